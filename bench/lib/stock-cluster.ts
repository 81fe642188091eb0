// Starts etcd and kube-apiserver for the comparison with upstream's sidecars. Nothing else runs in this cluster: no binder, no
// scheduler, no kubelet. Each side of the comparison has its own user, whose requests are in the audit log.
import { generateKeyPairSync } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { loadOrCreatePki } from '../../src/apiserver/security/index.ts'
import { systemClock } from '../../src/base/clock.ts'
import { type ChildProgram, startChildProgram } from './child-program.ts'
import { type Endpoint, openConnection } from './http-connection.ts'
import { numberedRequest } from './load-role.ts'

export interface StockCluster {
  /** The endpoint of the API server, with an administrator's certificate. */
  readonly admin: Endpoint
  readonly auditLog: string
  readonly programs: { readonly etcd: ChildProgram; readonly apiserver: ChildProgram }
  /** Returns the path of a kubeconfig for one of the users. */
  kubeconfigOf(user: string): string
  stop(): Promise<void>
}

interface StockClusterOptions {
  readonly dir: string
  /** The directory of kube-apiserver. */
  readonly binDir: string
  /** Administrators with tokens, whose requests are audited. */
  readonly users: readonly string[]
}

const READY_MS_MAX = 120_000

export async function startStockCluster({ dir, binDir, users }: StockClusterOptions): Promise<StockCluster> {
  const pkiDir = join(dir, 'pki')
  const pki = await loadOrCreatePki({ dir: pkiDir, clock: systemClock() })
  const [clientPort, peerPort, apiPort] = [await freePort(), await freePort(), await freePort()]
  const auditLog = join(dir, 'audit.log')
  const writeConfig = async (name: string, content: string): Promise<string> => {
    const path = join(dir, name)
    await writeFile(path, content, { mode: 0o600 })
    return path
  }
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const etcd = await startChildProgram({
    command: 'etcd',
    args: [
      `--data-dir=${join(dir, 'etcd')}`,
      `--listen-client-urls=http://127.0.0.1:${clientPort}`,
      `--advertise-client-urls=http://127.0.0.1:${clientPort}`,
      `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
      '--log-level=error',
    ],
    logPath: join(dir, 'etcd.log'),
  })
  await mkdir(join(dir, 'certs'))
  const apiserver = await startChildProgram({
    command: join(binDir, 'kube-apiserver'),
    args: [
      `--etcd-servers=http://127.0.0.1:${clientPort}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${apiPort}`,
      `--cert-dir=${join(dir, 'certs')}`,
      `--tls-cert-file=${await writeConfig('serving.crt', pki.servingCert)}`,
      `--tls-private-key-file=${await writeConfig('serving.key', pki.servingKey)}`,
      `--client-ca-file=${await writeConfig('ca.crt', pki.caCert)}`,
      `--token-auth-file=${await writeConfig('tokens.csv', users.map((user) => `token-of-${user},${user},${user},system:masters\n`).join(''))}`,
      '--authorization-mode=RBAC',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-signing-key-file=${await writeConfig('accounts.key', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())}`,
      `--service-account-key-file=${await writeConfig('accounts.pub', publicKey.export({ type: 'spki', format: 'pem' }).toString())}`,
      '--service-cluster-ip-range=10.0.0.0/24',
      // Allows pods without service accounts, and the deletion of claims and volumes without controllers.
      '--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection',
      `--audit-policy-file=${await writeConfig('audit.json', auditPolicy(users))}`,
      `--audit-log-path=${auditLog}`,
    ],
    logPath: join(dir, 'kube-apiserver.log'),
  })
  const admin: Endpoint = { port: apiPort, ca: pki.caCert, cert: pki.admin.cert, key: pki.admin.key }
  await waitUntilReady(admin)
  for (const user of users) await writeConfig(`${user}.kubeconfig`, kubeconfig(user, apiPort, pki.caCert))
  return {
    admin,
    auditLog,
    programs: { etcd, apiserver },
    kubeconfigOf: (user) => join(dir, `${user}.kubeconfig`),
    async stop() {
      await apiserver.stop()
      await etcd.stop()
    },
  }
}

const auditPolicy = (users: readonly string[]): string =>
  JSON.stringify({
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'],
    rules: [{ level: 'Metadata', users }, { level: 'None' }],
  })

const kubeconfig = (user: string, port: number, ca: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'stock',
        cluster: {
          server: `https://127.0.0.1:${port}`,
          'certificate-authority-data': Buffer.from(ca).toString('base64'),
        },
      },
    ],
    users: [{ name: user, user: { token: `token-of-${user}` } }],
    contexts: [{ name: 'stock', context: { cluster: 'stock', user } }],
    'current-context': 'stock',
  })

async function waitUntilReady(admin: Endpoint): Promise<void> {
  const endMs = performance.now() + READY_MS_MAX
  const request = numberedRequest({ method: 'GET', path: '/readyz' })(0)
  while (performance.now() < endMs) {
    try {
      const connection = await openConnection(admin, () => {})
      const { status } = await new Promise<{ status: number }>((resolve) => connection.send(request, resolve))
      connection.close()
      if (status === 200) return
    } catch {
      // kube-apiserver does not listen yet.
    }
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  throw new Error(`kube-apiserver was not ready within ${READY_MS_MAX / 1_000} s`)
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
