"""Which operators are right on which path: networks of one operator, built and run as every case is, in one table."""
