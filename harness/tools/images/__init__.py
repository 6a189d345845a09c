"""Labelled data of pictures: a folder for each class."""

from harness.base.tool import CacheKind, Tool

TOOL = Tool(
    "images",
    labelled_pictures="harness.tools.images.pictures:labelled_file",
    cache_kinds=(CacheKind("pictures", "labelled pictures as the inputs of a model"),),
)
