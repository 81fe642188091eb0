// Runs the program as `stowage up`, sends the requests of a small workload to it, and writes V8's code cache of the script, which
// then contains the functions that were called. Arguments: the script, and a directory that contains the fake CSI driver.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'
import { crc32 } from 'node:zlib'

const CLAIMS = 60
const CLIENTS = 16
const DRIVER = 'training.csi.stowage.dev'
const NAMESPACE = '/api/v1/namespaces/training'
const CLAIMS_PATH = `${NAMESPACE}/persistentvolumeclaims`
const VOLUMES_PATH = '/api/v1/persistentvolumes'
const WAIT_MS = 20

const [, , file, dir] = process.argv
const dataDir = join(dir, 'data')
const socket = join(dir, 'csi.sock')
const driverFlags = ['--endpoint', `unix://${socket}`, '--name', DRIVER, '--capacity', '100Ti']
const driver = spawn(process.execPath, [join(dir, 'driver.mjs'), ...driverFlags])
process.on('exit', () => driver.kill())
await once(driver.stdout, 'data')

const url = pathToFileURL(file).href
const text = readFileSync(file)
const script = new Script(text.toString('latin1'), { filename: url })
const flags = ['--data-dir', dataDir, '--listen', '127.0.0.1:0', '--nodes', '0', '--no-console', '--driver', socket]
flags.push('--warm-up', 'off')
process.argv = [process.argv[0], file, 'up', ...flags]
script.runInThisContext()(createRequire(url), url)

const kubeconfig = join(dataDir, 'admin.kubeconfig')
await until(() => existsSync(kubeconfig))
const read = (name, text = readFileSync(kubeconfig, 'utf8')) => new RegExp(`${name}: "?([^"\\s]+)`).exec(text)[1]
const decode = (name) => Buffer.from(read(name), 'base64')
const agent = new Agent({
  keepAlive: true,
  maxSockets: CLIENTS,
  ca: decode('certificate-authority-data'),
  cert: decode('client-certificate-data'),
  key: decode('client-key-data'),
})
const server = read('server')
await until(async () => (await send('GET', '/readyz')).status === 200)
await train()
storeCache()
agent.destroy()
process.kill(process.pid, 'SIGTERM')

async function train() {
  for (const path of ['/api', '/apis', '/api/v1', '/version', '/openapi/v2', '/openapi/v3', '/metrics'])
    await send('GET', path)
  await send('POST', '/api/v1/namespaces', { metadata: { name: 'training' } })
  const classes = '/apis/storage.k8s.io/v1/storageclasses'
  await send('POST', classes, { metadata: { name: 'fast' }, provisioner: DRIVER })
  const watch = request(`${server}${CLAIMS_PATH}?watch=1`, { agent }).end()
  const [events] = await once(watch, 'response')
  events.resume()

  const names = Array.from({ length: CLAIMS }, (_, index) => `claim-${index}`)
  await forAll(names, async (name, index) => {
    if (index % 10 === 0) await send('POST', VOLUMES_PATH, volumeOf(name))
    await send('POST', CLAIMS_PATH, claimOf(name, index % 10 === 0 ? 'manual' : 'fast'))
  })
  await until(async () => {
    const { items } = JSON.parse((await send('GET', CLAIMS_PATH)).text)
    return items.every(({ status }) => status.phase === 'Bound')
  })
  await forAll(names.slice(0, CLAIMS / 4), async (name) => {
    const path = `${CLAIMS_PATH}/${name}`
    const claim = JSON.parse((await send('GET', path)).text)
    await send('PUT', path, { ...claim, metadata: { ...claim.metadata, labels: { replaced: 'true' } } })
    await send('PATCH', path, { metadata: { labels: { merged: 'true' } } }, 'application/merge-patch+json')
    const applied = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name, labels: { applied: 'true' } } }
    await send('PATCH', `${path}?fieldManager=training`, applied, 'application/apply-patch+yaml')
  })
  await send('GET', CLAIMS_PATH, undefined, undefined, 'application/json;as=Table;v=v1;g=meta.k8s.io')
  await forAll(names, (name) => send('DELETE', `${CLAIMS_PATH}/${name}`))
  await until(async () => {
    const { items } = JSON.parse((await send('GET', VOLUMES_PATH)).text)
    return items.every(({ spec }) => spec.persistentVolumeReclaimPolicy === 'Retain')
  })
  watch.destroy()
}

/** V8 compares its flags with those of the process that reads the cache, so the flag that the program has set is reset. */
function storeCache() {
  setFlagsFromString('--heap-growing-percent=0')
  const code = script.createCachedData()
  const checksums = Buffer.alloc(8) // read by src/base/compiled-script.ts
  checksums.writeUInt32LE(crc32(text), 0)
  checksums.writeUInt32LE(crc32(code), 4)
  const cache = `${file}.${process.versions.v8}-${process.arch}.cache`
  writeFileSync(`${cache}.tmp`, Buffer.concat([code, checksums]))
  renameSync(`${cache}.tmp`, cache)
}

function claimOf(name, storageClassName) {
  const resources = { requests: { storage: '1Gi' } }
  return { metadata: { name }, spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources } }
}

function volumeOf(name) {
  const { spec } = claimOf(name, 'manual')
  const { resources, ...fields } = spec
  return {
    metadata: { name },
    spec: { ...fields, capacity: resources.requests, hostPath: { path: `/volumes/${name}` } },
  }
}

async function send(method, path, body, type = 'application/json', accept = 'application/json') {
  const headers = { accept, ...(body ? { 'content-type': type } : {}) }
  const sent = request(`${server}${path}`, { method, agent, headers }).end(body ? JSON.stringify(body) : undefined)
  const [response] = await once(sent, 'response')
  const text = Buffer.concat(await response.toArray()).toString()
  if (response.statusCode >= 300 && path !== '/readyz')
    throw new Error(`${method} ${path}: ${response.statusCode} ${text}`)
  return { status: response.statusCode, text }
}

async function forAll(items, run) {
  const entries = items.entries()
  const work = async () => {
    for (const [index, item] of entries) await run(item, index)
  }
  await Promise.all(Array.from({ length: CLIENTS }, work))
}

async function until(isTrue) {
  while (!(await isTrue())) await sleep(WAIT_MS)
}
