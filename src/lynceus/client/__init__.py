"""What runs outside Lynceus: the HTTP client, and `report`, which jobs call."""
