"""Raw HTTP for scripts: `@rawhttp`, AMLRequest, AMLResponse."""
