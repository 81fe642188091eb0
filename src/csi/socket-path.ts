// Where a driver's socket is. Only unix sockets: the protocol knows no other transport.
import { resolve } from 'node:path'

/** Linux keeps a socket's path in 108 bytes, the last of which is zero. */
const SOCKET_PATH_BYTES_MAX = 107

/** The absolute path in `unix:///run/x/csi.sock`, `unix:x.sock` or a bare path. */
export function socketPathOf(address: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):(\/\/)?/i.exec(address)
  if (scheme && scheme[1]?.toLowerCase() !== 'unix') {
    throw new Error(`"${address}" is not a unix socket. Give unix:///path/to/csi.sock, or the path alone.`)
  }
  const path = scheme ? address.slice(scheme[0].length) : address
  if (path === '') throw new Error(`"${address}" names no socket. Give unix:///path/to/csi.sock, or the path alone.`)
  const absolute = resolve(path)
  const bytes = Buffer.byteLength(absolute)
  if (bytes > SOCKET_PATH_BYTES_MAX) {
    throw new Error(
      `The socket's path ${absolute} has ${bytes} bytes, and the system takes ${SOCKET_PATH_BYTES_MAX}. Choose a shorter one.`,
    )
  }
  return absolute
}
