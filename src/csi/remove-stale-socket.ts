// Removes the socket file of a killed process. While the file exists, no process can listen on its path.
import { lstat, rm } from 'node:fs/promises'
import { connect } from 'node:net'

/** Removes the socket if no process listens on it. Throws if one does, or if the path is not a socket. */
export async function removeStaleSocket(path: string): Promise<void> {
  const stats = await lstat(path).catch(() => undefined)
  if (!stats) return
  if (!stats.isSocket())
    throw new Error(`Cannot listen on ${path}: it exists and is not a socket. Remove it, or choose another path.`)
  if (await isListening(path)) {
    throw new Error(
      `Cannot listen on ${path}: another process listens on it. Stop that process, or choose another path.`,
    )
  }
  await rm(path, { force: true })
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
