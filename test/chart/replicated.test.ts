// Runs a server, controllers and a scheduler with the arguments and the kubeconfig that the chart renders for the mode replicated,
// on etcd, with tokens as docs/how-to/helm.md creates them. The tests replace only paths and addresses.
import { X509Certificate } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { etcdSkipReason, type RunningEtcd, startEtcd } from '../helpers/etcd.ts'
import { helmSkipReason, type Manifest, parseManifests, runHelm } from '../helpers/helm.ts'
import { runStowage } from '../helpers/run-stowage.ts'
import { type RunningServer, startServer } from '../helpers/server.ts'
import { type RunningStowage, startStowage } from '../helpers/stowage.ts'

const CORE = '/api/v1/namespaces/default'
const CLAIM = `${CORE}/persistentvolumeclaims/orders`
const POD = `${CORE}/pods/shop`
const SYSTEM = '/api/v1/namespaces/kube-system'
const POLLS_MAX = 800
const CLIENTS = ['controllers', 'scheduler'] as const

const skipMessage = helmSkipReason() ?? etcdSkipReason()

describe.skipIf(skipMessage)(
  `the processes of the mode replicated${skipMessage ? ` (skipped: ${skipMessage})` : ''}`,
  () => {
    let dir: string
    let etcd: RunningEtcd
    let server: RunningServer
    const clients: RunningStowage[] = []

    beforeAll(async () => {
      dir = await mkdtemp(join(tmpdir(), 'stowage-replicated-'))
      etcd = await startEtcd()
      const seed = await startServer({ dataDir: join(dir, 'seed'), command: 'server' })
      await seed.stop()
      const etcdFlags = ['--set', `etcd.endpoints={${etcd.endpoints.join()}}`, '--set', 'etcd.tls.secretName=']
      const { stdout, stderr } = await runHelm('template', 'replicated', etcdFlags)
      expect(stderr).toBe('')
      const manifests = parseManifests(stdout)
      const flags = findArguments(manifests, 'server')
        .slice(1)
        .filter((arg) => !/^--(listen|data-dir)=/.test(arg))
        .map((arg) => arg.replace('=/etc/stowage/pki', `=${join(dir, 'seed', 'pki')}`))
      server = await startServer({ dataDir: join(dir, 'data'), command: 'server', flags })
      for (const name of CLIENTS) clients.push(await startClient(name, manifests))
    })
    afterAll(async () => {
      for (const client of clients) await client.stop()
      await server?.stop()
      await etcd?.remove()
      await rm(dir, { recursive: true, force: true })
    })

    async function post(path: string, body: object): Promise<any> {
      const { status, text, json } = await server.call('POST', path, body)
      expect(status, `POST ${path}: ${text}`).toBe(201)
      return json
    }
    async function pollUntil(path: string, isExpected: (status: number, object: any) => boolean): Promise<any> {
      for (let poll = 0; ; poll++) {
        const { status, text, json } = await server.call('GET', path)
        if (isExpected(status, json)) return json
        if (poll === POLLS_MAX) throw new Error(`timed out waiting for ${path}, which is ${text}`)
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }

    /** Creates the roles of a component, and a token for its service account that does not expire. */
    async function createToken(account: string, component: string): Promise<string> {
      const { stdout } = await runStowage('rbac', 'print', '--component', component, '--service-account', account)
      for (const document of parseAllDocuments(stdout)) {
        const object = document.toJS() as Manifest
        const prefix = object.apiVersion === 'v1' ? '/api/v1' : `/apis/${object.apiVersion}`
        const scope = object.metadata.namespace ? `/namespaces/${object.metadata.namespace}` : ''
        await post(`${prefix}${scope}/${object.kind.toLowerCase()}s`, object)
      }
      const annotations = { 'kubernetes.io/service-account.name': account }
      const metadata = { name: account, annotations }
      await post(`${SYSTEM}/secrets`, { metadata, type: 'kubernetes.io/service-account-token' })
      const { data } = await pollUntil(`${SYSTEM}/secrets/${account}`, (_, secret) => Boolean(secret.data?.token))
      return Buffer.from(data.token, 'base64').toString('utf8')
    }

    /** Starts controllers or scheduler with the files that the chart projects into their pods. */
    async function startClient(
      name: (typeof CLIENTS)[number],
      manifests: readonly Manifest[],
    ): Promise<RunningStowage> {
      const clientDir = join(dir, name)
      await mkdir(clientDir)
      const configMap = manifests.find(({ metadata }) => metadata.name === 'stowage-kubeconfig')!
      const kubeconfig = configMap.data.kubeconfig.replace('https://stowage.stowage.svc:7443', server.url)
      await writeFile(join(clientDir, 'kubeconfig'), kubeconfig)
      await writeFile(join(clientDir, 'ca.crt'), server.ca)
      await writeFile(join(clientDir, 'token'), await createToken(`stowage-${name}`, name))
      const args = findArguments(manifests, name)
        .map((arg) => arg.replace('=/etc/stowage/client', `=${clientDir}`))
        .map((arg) => arg.replace(/^--http-endpoint=.*/, '--http-endpoint=127.0.0.1:0'))
      return startStowage({ args })
    }

    it('SYS-9 SYS-24 bind claims and schedule pods with the permissions of their tokens', async () => {
      await pollUntil(`${CORE}/serviceaccounts/default`, (status) => status === 200) // created by the controllers
      const spec = { accessModes: ['ReadWriteOnce'], storageClassName: '' }
      const volume = { ...spec, capacity: { storage: '1Gi' }, hostPath: { path: '/nowhere' } }
      await post('/api/v1/persistentvolumes', { metadata: { name: 'orders' }, spec: volume })
      const requests = { storage: '1Gi' }
      await post(`${CORE}/persistentvolumeclaims`, {
        metadata: { name: 'orders' },
        spec: { ...spec, resources: { requests } },
      })
      await pollUntil(CLAIM, (_, claim) => claim.status?.phase === 'Bound')

      const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: new Date().toISOString() }]
      const status = { conditions, allocatable: { cpu: '1', memory: '1Gi', pods: '10' } }
      await post('/api/v1/nodes', { metadata: { name: 'node-1' }, status })
      const containers = [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }]
      const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'orders' } }]
      await post(`${CORE}/pods`, { metadata: { name: 'shop' }, spec: { containers, volumes } })
      await pollUntil(POD, (_, pod) => pod.spec.nodeName === 'node-1')
      for (const client of clients) expect(client.log()).not.toContain('missing permission')
    })

    it('SYS-24 serve a certificate with the names of the Service, issued by the shared CA', async () => {
      const certificate = new X509Certificate(await readFile(join(dir, 'data', 'pki', 'serving.crt')))
      for (const host of ['stowage', 'stowage.stowage', 'stowage.stowage.svc', 'stowage.stowage.svc.cluster.local'])
        expect(certificate.checkHost(host)).toBe(host)
      const ca = new X509Certificate(await readFile(join(dir, 'seed', 'pki', 'ca.crt')))
      expect(certificate.verify(ca.publicKey)).toBe(true)
    })
  },
)

/** Returns the arguments of the Deployment of a component. */
const findArguments = (manifests: readonly Manifest[], component: string): string[] =>
  manifests.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === `stowage-${component}`)!.spec
    .template.spec.containers[0].args
