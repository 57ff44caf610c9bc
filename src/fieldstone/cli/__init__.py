"""The command line: one file for each command. What is heavy is loaded when a command runs, so that help is quick."""
