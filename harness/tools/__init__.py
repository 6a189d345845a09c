"""Tools around the main job. Each is one folder; nothing of the main job imports one."""
