"""From a network that is wrong or broken to the smallest one that is so in the same way, and a folder that shows it."""
