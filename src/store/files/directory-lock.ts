// An exclusive lock on a directory, which the kernel releases when the process exits or crashes. It consists of two
// Unix sockets on which the holder listens.
//
// The first socket is abstract (it has no file) and named after the canonical path, so it excludes a second process on that
// path even if the directory was deleted and created again. Paths have a meaning within one mount namespace and abstract
// sockets within one network namespace, so this socket excludes the processes of one container or one host.
//
// The second socket is in the directory, named lock-<pid>-…, so it excludes processes of other containers and processes that
// reach the directory by another path. A socket that refuses connections belongs to a process that has exited. A process
// first listens and then checks the other sockets, so two processes that start at the same time may both fail, but never
// both succeed.
//
// Process IDs are used only in the error message, so the reuse of process IDs and process ID namespaces are harmless.
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { open, readdir, readlink, realpath, rename, rm } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'

export interface DirectoryLock {
  release(): Promise<void>
}

/** Locks an existing directory. Throws an error with the ID of the process that holds the lock, if it is known. */
export async function lockDirectory(dir: string): Promise<DirectoryLock> {
  const pathServer = await lockPath(dir)
  try {
    const socket = await lockWithSocket(dir)
    const release = async () => {
      await socket.release()
      await closeServer(pathServer)
    }
    return { release }
  } catch (error) {
    await closeServer(pathServer)
    throw error
  }
}

/** Listens on the abstract socket of the path, and sends the process ID to every peer. */
async function lockPath(dir: string): Promise<Server> {
  const name = await pathSocketOf(dir)
  const server = createServer((peer) => {
    peer.on('error', () => {}) // the peer may disconnect at any time
    peer.end(String(process.pid))
  }).unref()
  server.listen(name)
  await once(server, 'listening').catch(async (error) => {
    if (error.code === 'EADDRINUSE') throw inUseError(dir, await readPid(name))
    throw new Error(`Cannot lock the path ${dir}: ${error.message}`, { cause: error })
  })
  server.on('error', () => {})
  return server
}

async function pathSocketOf(dir: string): Promise<string> {
  const mountNamespace = await readlink('/proc/self/ns/mnt').catch(() => '')
  const digest = createHash('sha256')
    .update(`${mountNamespace}\n${await realpath(dir)}`)
    .digest('hex')
  return `\0stowage-lock-${digest.slice(0, 40)}`
}

/** Reads the process ID that the holder of a path sends. Returns undefined if it does not arrive. */
async function readPid(name: string): Promise<string | undefined> {
  const peer = connect(name).setTimeout(PID_TIMEOUT_MS)
  peer.on('timeout', () => peer.destroy(new Error('timeout')))
  try {
    const [data] = await once(peer, 'data')
    return /^\d{1,10}$/.exec(String(data))?.[0]
  } catch {
    return undefined
  } finally {
    peer.destroy()
  }
}

const PID_TIMEOUT_MS = 1_000 // a holder that is busy for longer is not named in the error

async function lockWithSocket(dir: string): Promise<DirectoryLock> {
  const handle = await open(dir, 'r')
  const socketPath = (name: string) => `/proc/self/fd/${handle.fd}/${name}` // `dir` may be longer than a socket path can be
  const ownName = `lock-${process.pid}-${randomUUID().slice(0, 8)}`
  const server = createServer((peer) => peer.destroy()).unref()

  const release = async () => {
    await rm(socketPath(ownName), { force: true })
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
    await rename(socketPath(`${ownName}.new`), socketPath(ownName))
    for (const name of await readdir(socketPath('.'))) {
      const match = LOCK_NAME.exec(name)
      if (!match || name === ownName) continue
      if (await isListening(socketPath(name))) throw inUseError(dir, match[1])
      await rm(socketPath(name), { force: true })
    }
  } catch (error) {
    await release()
    throw error
  }
  return { release }
}

/** Throws, as lockDirectory does, if another process holds the lock on the directory at this moment. */
export async function requireUnusedDirectory(dir: string): Promise<void> {
  const lock = await lockDirectory(dir)
  await lock.release()
}

const inUseError = (dir: string, pid: string | undefined) =>
  new Error(
    `The directory ${dir} is in use by another Stowage process${pid ? ` (pid ${pid})` : ''}. ` +
      'Stop it, or use another directory.',
  )

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
