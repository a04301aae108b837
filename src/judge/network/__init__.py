"""The network of an attempt: where the browser may connect, who answers its requests, and the record of both."""
