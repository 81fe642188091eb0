// Public API of the console.
export type { ConsoleServerOptions } from './console-server.ts'
export { type ConsoleListener, DEFAULT_PORT, listenConsole } from './listener.ts'
