"""The judge: useful without any model. Imports nothing of agentloop or of tasks."""

ORACLE_VERSION = "6"  # raised whenever a verdict may change; runs of different versions are not mixed
