// Locks a pool, so that only one driver of a network namespace uses it. The lock is an abstract Unix socket, on which only one
// process of the namespace can listen, and which the kernel releases when the process exits.
import { stat } from 'node:fs/promises'
import { createServer } from 'node:net'

export async function lockPool(directory: string): Promise<{ release(): Promise<void> }> {
  const { dev, ino } = await stat(directory)
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? new Error(
              `The pool ${directory} is in use by another driver on this machine. Stop it, or choose another pool.`,
            )
          : error,
      ),
    )
    server.listen(`\0stowage-pool-${dev}-${ino}`, resolve)
  })
  return { release: () => new Promise((resolve) => server.close(() => resolve())) }
}
