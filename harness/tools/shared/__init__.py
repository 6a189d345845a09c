"""What several tools need and the main job does not. No tool: it adds nothing by itself, and imports none."""
