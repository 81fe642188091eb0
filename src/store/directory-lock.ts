// An exclusive lock on a directory, which the kernel releases when the process exits or crashes.
//
// Each holder listens on a Unix socket in the directory, named lock-<pid>-…; a socket that refuses connections belongs to a
// process that has exited. A process first listens and then checks the other sockets, so two processes that start at the
// same time may both fail, but never both succeed. Process IDs are used only in the error message, so the reuse of process
// IDs and process ID namespaces are harmless.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { open, readdir, rename, rm } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'

export interface DirectoryLock {
  release(): Promise<void>
}

export async function lockDirectory(dir: string): Promise<DirectoryLock> {
  const handle = await open(dir, 'r')
  const socketPath = (name: string) => `/proc/self/fd/${handle.fd}/${name}` // `dir` may be longer than a socket path can be
  const ownName = `lock-${process.pid}-${randomUUID().slice(0, 8)}`
  const server = createServer((peer) => peer.destroy()).unref()

  const release = async () => {
    await rm(`${dir}/${ownName}`, { force: true })
    await closeServer(server)
    await handle.close()
  }
  try {
    // Rename the socket after it listens, because another process would delete a socket that does not.
    server.listen(socketPath(`${ownName}.new`))
    await once(server, 'listening').catch((error) => {
      throw new Error(`Cannot lock the directory ${dir}: ${error.message}`, { cause: error })
    })
    server.on('error', () => {}) // ignore accept errors, because the peer only needs to connect
    await rename(`${dir}/${ownName}.new`, `${dir}/${ownName}`)
    for (const name of await readdir(dir)) {
      const match = LOCK_NAME.exec(name)
      if (!match || name === ownName) continue
      if (await isListening(socketPath(name))) {
        throw new Error(
          `The directory ${dir} is in use by another Stowage process (pid ${match[1]}). Stop it, or use another directory.`,
        )
      }
      await rm(`${dir}/${name}`, { force: true })
    }
  } catch (error) {
    await release()
    throw error
  }
  return { release }
}

/** Whether a running process holds the lock on the directory. */
export async function isDirectoryInUse(dir: string): Promise<boolean> {
  const handle = await open(dir, 'r')
  try {
    for (const name of await readdir(dir)) {
      if (LOCK_NAME.test(name) && (await isListening(`/proc/self/fd/${handle.fd}/${name}`))) return true
    }
    return false
  } finally {
    await handle.close()
  }
}

const LOCK_NAME = /^lock-(\d+)-[0-9a-f]+$/

async function isListening(path: string): Promise<boolean> {
  const peer = connect(path)
  try {
    await once(peer, 'connect')
    return true
  } catch (error) {
    // ECONNREFUSED: the process has exited. ENOENT: the socket was removed. Otherwise assume that the process is running.
    const code = (error as NodeJS.ErrnoException).code
    return code !== 'ECONNREFUSED' && code !== 'ENOENT'
  } finally {
    peer.destroy()
  }
}

const closeServer = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()))
