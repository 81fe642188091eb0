// Measures the cost of access control: durable creates by a user with a role among many bindings, compared with those of
// an administrator; and creates with RBAC, audit log and encryption at rest, compared with those of an administrator on a
// server without audit log or encryption. The requests alternate, so that all are measured under the same load of the machine.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadOrCreatePki, type Pki } from '../src/apiserver/security/index.ts'
import { systemClock } from '../src/base/clock.ts'
import { buildClaim } from './lib/claims.ts'
import { type Figure, medianOf } from './lib/figure.ts'
import type { Endpoint } from './lib/http-connection.ts'
import { NUMBER, type RequestText, type TurnsJob, type TurnsResult } from './lib/load-role.ts'
import { post } from './lib/post.ts'
import { startRole } from './lib/role.ts'
import { type ServerProcess, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

/** Many short turns, because the speed of the machine changes from second to second. */
const TURN_MS = 150
const ROUNDS = 40
const ROUNDS_LONG = 160
const WARM_UP_MS = 3_000
const CLIENTS = 64
const BINDINGS = 1_000
const RBAC_RATIO_MIN = 0.97
const ALL_RATIO_MIN = 0.9

const NAMESPACE = 'kube-public'
const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const CLAIM: RequestText = {
  method: 'POST',
  path: `/api/v1/namespaces/${NAMESPACE}/persistentvolumeclaims`,
  body: JSON.stringify(buildClaim(`claim-${NUMBER}`)),
}
const SECRET: RequestText = {
  method: 'POST',
  path: `/api/v1/namespaces/${NAMESPACE}/secrets`,
  body: JSON.stringify({ metadata: { name: `secret-${NUMBER}` }, stringData: { password: 'x'.repeat(64) } }),
}

export const accessSuite: Suite = { parts: { creates: measureAccess } }

async function measureAccess({ dir, profileDir, isLong, progress }: PartOptions): Promise<Figure[]> {
  const rounds = isLong ? ROUNDS_LONG : ROUNDS
  const servers: ServerProcess[] = []
  const load = startRole<TurnsJob, TurnsResult>('load')
  /** Starts a server and returns the endpoints of its administrator and of its viewer. */
  const start = async (name: string, flags: readonly string[]) => {
    const dataDir = join(dir, name)
    await mkdir(dataDir)
    const pki = await loadOrCreatePki({ dir: join(dataDir, 'pki'), clock: systemClock() })
    const server = await startServer({ dataDir, profileDir, flags })
    servers.push(server)
    const endpoint = (credential: Pki['admin']): Endpoint => ({
      port: server.port,
      ca: pki.caCert,
      cert: credential.cert,
      key: credential.key,
    })
    return { admin: endpoint(pki.admin), viewer: endpoint(pki.viewer) }
  }
  try {
    const { admin, viewer } = await start('with', [])
    const { admin: bareAdmin } = await start('without', await flagsWithoutAuditAndEncryption(dir))
    progress(`creating ${formatCount(BINDINGS)} bindings`)
    await createBindings(admin)
    progress(`${rounds} rounds of creates`)
    // Both servers get the same number of turns of claims and of Secrets, because creates become slower as a store grows.
    const requests = [
      { ...CLAIM, endpoint: admin },
      { ...CLAIM, endpoint: viewer },
      { ...CLAIM, endpoint: bareAdmin },
      { ...CLAIM, endpoint: bareAdmin },
      { ...SECRET, endpoint: viewer },
      { ...SECRET, endpoint: bareAdmin },
    ]
    const { rates } = await load.run({
      do: 'turns',
      clients: CLIENTS,
      requests,
      order: Array.from({ length: rounds }, () => shuffleIndexes(requests.length)).flat(),
      warmUpMs: WARM_UP_MS,
      turnMs: TURN_MS,
    })
    const [adminRates, viewerRates, bareRates, moreBareRates, ...secretRates] = rates
    return figuresOf([adminRates!, viewerRates!, [...bareRates!, ...moreBareRates!], ...secretRates].map(medianOf))
  } finally {
    load.stop()
    for (const server of servers) await server.stop()
  }
}

/** Returns the indexes of the requests in a random order: no request always follows the same other request. */
function shuffleIndexes(requests: number): number[] {
  const order = Array.from({ length: requests }, (_, index) => index)
  for (let lastIndex = requests - 1; lastIndex > 0; lastIndex--) {
    const otherIndex = Math.floor(Math.random() * (lastIndex + 1))
    ;[order[lastIndex], order[otherIndex]] = [order[otherIndex]!, order[lastIndex]!]
  }
  return order
}

/** Allows the viewer to create claims and Secrets in one namespace, which also has bindings of other users. */
async function createBindings(admin: Endpoint): Promise<void> {
  const rules = [{ apiGroups: [''], resources: ['persistentvolumeclaims', 'secrets'], verbs: ['create'] }]
  await post(admin, `${RBAC}/namespaces/${NAMESPACE}/roles`, { metadata: { name: 'creator' }, rules })
  for (let number = 0; number < BINDINGS; number++) {
    const user = number === BINDINGS - 1 ? 'stowage-viewer' : `user-${number}`
    await post(admin, `${RBAC}/namespaces/${NAMESPACE}/rolebindings`, {
      metadata: { name: `creator-${number}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'creator' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    })
  }
}

async function flagsWithoutAuditAndEncryption(dir: string): Promise<string[]> {
  const policy = join(dir, 'no-audit.yaml')
  await writeFile(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n')
  const encryption = join(dir, 'no-encryption.yaml')
  await writeFile(
    encryption,
    'apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers: [{identity: {}}]\n',
    { mode: 0o600 },
  )
  return ['--audit-policy-file', policy, '--encryption-provider-config', encryption]
}

function figuresOf([admin, viewer, bare, secret, bareSecret]: number[]): Figure[] {
  const name = (kinds: string) => `durable creates of ${kinds}, ${CLIENTS} clients`
  return [
    {
      name: `${name('claims')}, role among ${formatCount(BINDINGS)} bindings`,
      unit: '/s',
      value: viewer!,
      limit: { value: admin!, of: 'an administrator on the same server' },
      target: { ratioMin: RBAC_RATIO_MIN },
    },
    {
      name: `${name('claims')}, with RBAC, audit log and encryption`,
      unit: '/s',
      value: viewer!,
      limit: { value: bare!, of: 'an administrator without audit log or encryption' },
      target: { ratioMin: ALL_RATIO_MIN },
    },
    {
      name: `${name('Secrets')}, with RBAC, audit log and encryption`,
      unit: '/s',
      value: secret!,
      limit: { value: bareSecret!, of: 'an administrator without audit log or encryption' },
      target: { ratioMin: ALL_RATIO_MIN },
    },
  ]
}
