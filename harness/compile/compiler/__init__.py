"""What we know of TVM: releases, what is installed, lists of passes, statements, and where interfaces differ."""
