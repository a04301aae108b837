"""The location of MiniWoB++ before it became a plug-in: scenarios name `judge.scenario.miniwob.site` as a command."""
