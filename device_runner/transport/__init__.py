"""How a device is reached: adb behind total deadlines, pushes by hash, quoting."""
