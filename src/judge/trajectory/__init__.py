"""An attempt on disk: the record, its readers, its formats."""
