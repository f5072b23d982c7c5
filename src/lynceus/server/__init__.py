"""Studies in a browser and as an HTTP API: `lynceus dashboard`, or `lynceus.server.app.create_app` behind a server of your own."""
