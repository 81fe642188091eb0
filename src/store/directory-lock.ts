// Lets one process at a time use a directory. The lock dies with its holder, however that ends.
//
// Each holder listens on a socket in the directory, named lock-<pid>-…; a socket that refuses connections belongs to
// a dead process. Everyone announces itself first and looks for others second, so of two that come at the same time
// at least one sees the other: both may be turned away, never both let in. Process ids are only for the message, so
// reusing them, or having two sets of them (containers), does no harm.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { open, readdir, rename, rm } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'

export interface DirectoryLock {
  release(): Promise<void>
}

export async function lockDirectory(dir: string): Promise<DirectoryLock> {
  const handle = await open(dir, 'r')
  const socket = (name: string) => `/proc/self/fd/${handle.fd}/${name}` // socket paths are short, directories may not be
  const own = `lock-${process.pid}-${randomUUID().slice(0, 8)}`
  const server = createServer((peer) => peer.destroy()).unref()

  const release = async () => {
    await rm(`${dir}/${own}`, { force: true })
    await closeServer(server)
    await handle.close()
  }
  try {
    // It gets its name when it already listens: nobody can take it for a dead one.
    server.listen(socket(`${own}.new`))
    await once(server, 'listening').catch((error) => {
      throw new Error(`Cannot lock the directory ${dir}: ${error.message}`, { cause: error })
    })
    server.on('error', () => {}) // a caller that could not be accepted has found out what it wanted all the same
    await rename(`${dir}/${own}.new`, `${dir}/${own}`)
    for (const name of await readdir(dir)) {
      const holder = LOCK_NAME.exec(name)
      if (!holder || name === own) continue
      if (await isListening(socket(name))) {
        throw new Error(
          `The directory ${dir} is in use by another Stowage process (pid ${holder[1]}). Stop it, or use another directory.`,
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

/** Whether a living process has the directory now. */
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
    // ECONNREFUSED: nobody listens any more. ENOENT: removed since we looked. Anything else: it may well be alive.
    const code = (error as NodeJS.ErrnoException).code
    return code !== 'ECONNREFUSED' && code !== 'ENOENT'
  } finally {
    peer.destroy()
  }
}

const closeServer = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()))
