"""People's labels: the page on which they are made, what people and judges agree on, and the order of runs by them."""
