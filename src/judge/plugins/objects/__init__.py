"""Object stores, through fsspec: shards on machines without a shared file system put their attempts there."""
