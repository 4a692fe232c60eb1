"""From trackers to bytecode: what runs when the guards of an entry hold."""
