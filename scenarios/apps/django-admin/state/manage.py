"""Django's commands for the workshop."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "workshop.settings"
    execute_from_command_line(sys.argv)
