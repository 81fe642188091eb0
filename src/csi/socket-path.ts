// Parses a driver's address. CSI drivers listen only on Unix sockets.
import { resolve } from 'node:path'

/** sun_path has 108 bytes on Linux, including the terminating NUL. */
const SOCKET_PATH_BYTES_MAX = 107

/** Returns the absolute path of `unix:///run/x/csi.sock`, `unix:x.sock` or a plain path. */
export function parseSocketPath(address: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):(\/\/)?/i.exec(address)
  if (scheme && scheme[1]?.toLowerCase() !== 'unix') {
    throw new Error(`"${address}" is not a Unix socket. Use unix:///path/to/csi.sock, or just the path.`)
  }
  const path = scheme ? address.slice(scheme[0].length) : address
  if (path === '') throw new Error(`"${address}" has no path. Use unix:///path/to/csi.sock, or just the path.`)
  const absolutePath = resolve(path)
  const bytes = Buffer.byteLength(absolutePath)
  if (bytes > SOCKET_PATH_BYTES_MAX) {
    throw new Error(
      `The socket path ${absolutePath} is ${bytes} bytes long; the maximum is ${SOCKET_PATH_BYTES_MAX}. Choose a shorter path.`,
    )
  }
  return absolutePath
}
