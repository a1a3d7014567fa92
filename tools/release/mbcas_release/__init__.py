"""What the scripts that pack images and releases share."""
