"""CPU units for another machine than this one, run by an emulator."""
