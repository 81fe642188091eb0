// Makes room for a socket. Its file outlives a process that was killed, and keeps the next one from listening there.
import { lstat, rm } from 'node:fs/promises'
import { connect } from 'node:net'

/** Removes a socket nobody answers on; throws if somebody does, or if it is no socket. */
export async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (!found) return
  if (!found.isSocket())
    throw new Error(`Cannot listen at ${path}: it is not a socket. Remove it, or choose another path.`)
  if (await isListening(path)) {
    throw new Error(`Cannot listen at ${path}: someone answers there already. Stop them, or choose another path.`)
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
