"""Near misses: walks that nearly do a task, and whether its checks notice; a bench of judges made of them."""
