"""Which operator of a network is the first that is off: the network cut into pieces, each built and run as any case."""
