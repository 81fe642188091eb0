// The console's port if no other is given, in a file of its own, so that `--help` does not load the console.
export const DEFAULT_PORT = 7444
