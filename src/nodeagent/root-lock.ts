// Locks the root directory of an agent, so that only one agent of a network namespace uses it. The lock is an abstract Unix
// socket, on which only one process of the namespace can listen, and which the kernel releases when the process exits.
import { stat } from 'node:fs/promises'
import { createServer } from 'node:net'

export interface RootLock {
  release(): Promise<void>
}

/** Throws if another agent has locked the directory. */
export async function lockRoot(root: string): Promise<RootLock> {
  const { dev, ino } = await stat(root)
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? new Error(`The directory ${root} is used by another node agent. Stop it, or choose another --root-dir.`)
          : error,
      ),
    )
    server.listen(`\0stowage-node-${dev}-${ino}`, resolve)
  })
  return { release: () => new Promise((resolve) => server.close(() => resolve())) }
}
