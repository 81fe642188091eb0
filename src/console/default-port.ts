// The console's default port, in a separate file, so that `--help` does not load the console.
export const DEFAULT_PORT = 7444
