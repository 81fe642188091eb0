// Starts the processes of the console tests: `stowage up` with two nodes and real volumes, and `stowage console` with the
// credentials of a kubeconfig. Builds and applies the manifests of the tests.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { buildProgram } from '../helpers/build-program.ts'
import { type RunningServer, startServer } from '../helpers/server.ts'

export interface ConsoleProcess {
  /** The printed URL with its token. */
  readonly url: string
  stop(): Promise<void>
}

/** Starts `stowage console` on a free port. */
export async function startConsole(kubeconfig: string, flags: readonly string[] = []): Promise<ConsoleProcess> {
  const args = ['console', '--kubeconfig', kubeconfig, '--port', '0', '--output', 'json', ...flags]
  const child = spawn(process.execPath, [await buildProgram(), ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  const lines = createInterface({ input: child.stdout })
  const exit = once(child, 'exit')
  const line = await Promise.race([once(lines, 'line'), exit.then(() => undefined)])
  if (line === undefined) throw new Error(`stowage console did not start: ${log}`)
  return {
    url: JSON.parse(String(line[0])).url,
    async stop() {
      child.kill('SIGTERM')
      await exit
    },
  }
}

/** `stowage up` with two nodes and real volumes. */
export interface TestSystem {
  readonly server: RunningServer
  /** Runs kubectl as administrator and returns its output. */
  kubectl(...args: readonly string[]): Promise<string>
  /** Applies manifests as administrator. */
  apply(manifests: string): Promise<void>
  /** Ends the server with SIGKILL and starts it again on the same address and data. */
  restart(): Promise<void>
  /** Deletes all pods and claims, ends the server, and removes its data. */
  remove(): Promise<void>
}

const run = promisify(execFile)

export async function startTestSystem(): Promise<TestSystem> {
  const dataDir = await mkdtemp(join(tmpdir(), 'stowage-console-'))
  const start = (listen: string) =>
    startServer({
      dataDir,
      nodes: 2,
      flags: ['--listen', listen, '--log-level', 'warn', '--run-commands'],
    })
  let server = await start('127.0.0.1:0')
  const kubectl = async (...args: readonly string[]) =>
    (await run('kubectl', ['--kubeconfig', server.kubeconfig, ...args])).stdout
  return {
    get server() {
      return server
    },
    kubectl,
    async apply(manifests) {
      const child = spawn('kubectl', ['--kubeconfig', server.kubeconfig, 'apply', '-f', '-'], {
        stdio: ['pipe', 'ignore', 'pipe'],
      })
      let errors = ''
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        errors += text
      })
      child.stdin.end(manifests)
      const [code] = await once(child, 'exit')
      if (code !== 0) throw new Error(`kubectl apply: ${errors}`)
    },
    async restart() {
      const { host } = new URL(server.url)
      await server.kill()
      server = await start(host)
    },
    async remove() {
      await kubectl('delete', 'pods,pvc', '--all', '--all-namespaces', '--grace-period=0', '--wait=true').catch(
        () => {},
      )
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

export const claimManifest = (name: string, size: string, fields = ''): string =>
  `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ${name}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: ${size}}}${fields}}
`

export const podManifest = (name: string, claimName: string): string =>
  `---
apiVersion: v1
kind: Pod
metadata: {name: ${name}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: none, command: [sleep, infinity], volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: ${claimName}}}]
`
