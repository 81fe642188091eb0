// Runs each command that replaces a program of Kubernetes with the permissions that upstream grants to that program (test/roles).
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { formatFieldSelector } from '../api/selectors.ts'
import { ADMIN, type Json, type ServerFixtureOptions } from '../apiserver/server.fixture.ts'
import { systemClock, systemRandom } from '../base/clock.ts'
import { loadRoles, nameOfRequest, type Role } from '../client/roles.fixture.ts'
import type { FakeSettings } from '../csi/fake/index.ts'
import type { ControllerName } from '../processes/controllers.ts'

import { runRemoteControllers } from './commands/controllers/run.ts'
import { runNode } from './commands/node/run.ts'
import { readProvisionerSettings } from './commands/provisioner/command.ts'
import { runProvisioner } from './commands/provisioner/run.ts'
import { readResizerSettings } from './commands/resizer/command.ts'
import { runResizer } from './commands/resizer/run.ts'
import { runScheduler } from './commands/scheduler/run.ts'
import { runStowageSidecar } from './commands/sidecar/run.ts'
import { readSidecarSettings } from './commands/sidecar/settings.ts'
import { startProgramFixture } from './program.fixture.ts'

const DRIVER = 'fake.stowage.example'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const VOLUMES = '/api/v1/persistentvolumes'
const PODS = '/api/v1/namespaces/default/pods'
const STORAGE = '/apis/storage.k8s.io/v1'
const WAIT = { timeout: 20_000, interval: 20 }
const GI = 1024 ** 3
/** Longer than the default, so that no process loses its lease on a busy machine. */
const LEASE_DURATION = '60s'

/**
 * The upstream roles of each controller of `stowage controllers`. Controllers without a counterpart upstream, such as
 * capacity-cleanup and lost-volumes, are not tested, and the scheduler runs as its own command.
 */
const CONTROLLER_ROLES: Readonly<Partial<Record<ControllerName, readonly string[]>>> = {
  attaching: ['attachdetach-controller'],
  binding: ['persistent-volume-binder'],
  ephemeral: ['ephemeral-volume-controller'],
  garbage: ['generic-garbage-collector'],
  namespaces: ['namespace-controller'],
  'node-lifecycle': ['node-controller', 'pod-garbage-collector'],
  protection: ['pv-protection-controller', 'pvc-protection-controller', 'volumeattributesclass-protection-controller'],
  quota: ['resourcequota-controller'],
  'root-ca': ['root-ca-cert-publisher'],
  'service-accounts': ['service-account-controller'],
  'stateful-sets': ['statefulset-controller'],
}
const CONTROLLER_NAMES = Object.keys(CONTROLLER_ROLES)

/** The permissions of each user. The namespace of the sidecars is default, that of the others is kube-system. */
const ROLES: Readonly<Record<string, Role>> = {
  provisioner: loadRoles(['external-provisioner'], 'default'),
  resizer: loadRoles(['external-resizer'], 'default'),
  attacher: loadRoles(['external-attacher'], 'default'),
  sidecar: loadRoles(['external-provisioner', 'external-resizer', 'external-attacher'], 'default'),
  node: loadRoles(['node'], 'kube-node-lease'),
  scheduler: loadRoles(['kube-scheduler'], 'kube-system'),
  ...Object.fromEntries(
    Object.entries(CONTROLLER_ROLES).map(([name, roles]) => [
      name,
      loadRoles(['kube-controller-manager', ...roles], 'kube-system'),
    ]),
  ),
}

/** Creates a server with a user per command, whose bearer token is the command's name. The server records denied requests. */
function createRoleServer(hasCommits: boolean): { options: ServerFixtureOptions; denied: Record<string, Set<string>> } {
  const deniedRequests: Record<string, Set<string>> = {}
  const options: ServerFixtureOptions = {
    authenticator: {
      authenticate({ authorization }) {
        const name = authorization?.replace('Bearer ', '') ?? ''
        const user = ROLES[name] ? { name, groups: ['system:authenticated'] } : ADMIN
        return { is: 'authenticated', user }
      },
      authenticateToken: () => undefined,
    },
    authorizer: {
      authorize(request) {
        const role = ROLES[request.user.name]
        if (!role || request.path !== undefined) return { allowed: true }
        const { resource: plural, fieldSelector = [], ...requestFields } = request
        if (plural === 'commits') return { allowed: hasCommits }
        const roleRequest = { ...requestFields, plural, fieldSelector: formatFieldSelector(fieldSelector) }
        if (role.allows(roleRequest)) return { allowed: true }
        deniedRequests[request.user.name] ??= new Set()
        deniedRequests[request.user.name]!.add(nameOfRequest(roleRequest))
        return { allowed: false }
      },
    },
  }
  return { options, denied: deniedRequests }
}

/** Patches that are denied once and are updates from then on (client/patch-by-update.ts). */
const REPLACED_PATCHES = [
  'patch leases.coordination.k8s.io',
  'patch persistentvolumeclaims',
  'patch persistentvolumeclaims/status',
  'patch persistentvolumes',
  'patch persistentvolumes/status',
  'patch statefulsets.apps/status',
  'patch volumeattributesclasses.storage.k8s.io',
]

/** Sent only if an operation takes longer than a second. Without permission, operations are not reported. */
const REPORT_REQUEST = 'create operationreports.stowage.dev'

/** Permissions beyond the role that a feature uses, and what happens without them. */
const EXTRA_RIGHTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  resizer: {
    'get storageclasses.storage.k8s.io':
      'Modifications use the secret and the initial attributes in the parameters of the class of a volume.',
  },
  sidecar: {
    'update persistentvolumes/status':
      'A server with transactions can bind a volume when it is created. Without the right, the binder binds it.',
  },
  provisioner: {
    'update persistentvolumes/status':
      'A server with transactions can bind a volume when it is created. Without the right, the binder binds it.',
  },
}

/** Starts all commands, each with its role. */
async function startCluster(driver: Partial<FakeSettings> = {}, { hasCommits = false, hasOneSidecar = false } = {}) {
  const { options, denied: deniedRequests } = createRoleServer(hasCommits)
  const program = await startProgramFixture(options)
  const { api, signal } = program
  const { fake, endpoint } = await program.serveFakeDriver(driver)
  const problems: string[] = []
  const logOf = (command: string) => {
    const problem = (fields: object, message: string) =>
      void problems.push(`${command}: ${message} ${JSON.stringify(fields)}`)
    return { debug: () => {}, info: () => {}, warn: problem, error: problem }
  }
  const deps = (command: string) => ({
    clock: systemClock(),
    random: systemRandom(),
    log: logOf(command),
    signal,
    env: { NAMESPACE: 'default' },
    write: () => {},
  })
  const sidecarFlags = {
    csiAddress: endpoint,
    retryIntervalStart: '10ms',
    leaderElection: 'true',
    leaderElectionNamespace: 'default',
    leaderElectionLeaseDuration: LEASE_DURATION,
    leaderElectionRenewDeadline: '40s',
  }
  const [provisioner, resizer, attacher, sidecar, scheduler] = await Promise.all(
    ['provisioner', 'resizer', 'attacher', 'sidecar', 'scheduler'].map(program.writeKubeconfig),
  )
  const capacity = { enableCapacity: 'central', capacityOwnerrefLevel: '-1', capacityPollInterval: '1s' }
  const flags = { ...sidecarFlags, ...capacity }
  if (hasOneSidecar) {
    const settings = readSidecarSettings({ ...flags, kubeconfig: sidecar })
    program.track(runStowageSidecar({ ...deps('sidecar'), settings }))
  } else {
    const settings = readProvisionerSettings({ ...flags, kubeconfig: provisioner })
    program.track(runProvisioner({ ...deps('provisioner'), settings }))
    const resizerSettings = readResizerSettings({ ...sidecarFlags, kubeconfig: resizer })
    program.track(runResizer({ ...deps('resizer'), settings: resizerSettings }))
    const attacherSettings = readSidecarSettings({ ...sidecarFlags, kubeconfig: attacher, controllers: 'attacher' })
    program.track(runStowageSidecar({ ...deps('attacher'), settings: attacherSettings }))
  }
  const election = { leaderElection: true, leaderElectionLeaseDuration: LEASE_DURATION }
  program.track(runScheduler({ kubeconfig: scheduler, ...election }, deps('scheduler')))
  for (const name of CONTROLLER_NAMES) {
    const kubeconfig = await program.writeKubeconfig(name)
    const flags = { kubeconfig, controllers: name, ...election, leaderElectionName: `stowage-${name}` }
    program.track(runRemoteControllers(flags, deps(name)))
  }

  const post = async (path: string, body: object): Promise<Json> => {
    const { status, json } = await api.post(path, body)
    expect(status, JSON.stringify(json)).toBe(201)
    return json
  }
  await post(`${STORAGE}/csidrivers`, {
    metadata: { name: DRIVER },
    spec: { storageCapacity: true, attachRequired: true },
  })
  await createNode(post)
  for (const volumeBindingMode of ['Immediate', 'WaitForFirstConsumer']) {
    await post(`${STORAGE}/storageclasses`, {
      metadata: { name: volumeBindingMode.toLowerCase() },
      provisioner: DRIVER,
      volumeBindingMode,
      allowVolumeExpansion: true,
    })
  }
  return {
    ...program,
    deps,
    fake,
    post,
    /** The requests of a command that its role does not grant. */
    denied: (command: string) => [...(deniedRequests[command] ?? [])].sort(),
    problems,
    waitUntil: (path: string, check: (object: Json) => void) =>
      vi.waitFor(async () => {
        const { status, json } = await api.get(path)
        expect(status).toBe(200)
        check(json)
        return json
      }, WAIT),
    waitUntilDeleted: (path: string) => vi.waitFor(async () => expect((await api.get(path)).status).toBe(404), WAIT),
  }
}

async function createNode(post: (path: string, body: object) => Promise<Json>): Promise<void> {
  const now = new Date().toISOString()
  const readyCondition = { type: 'Ready', status: 'True', lastHeartbeatTime: now, lastTransitionTime: now }
  await post('/api/v1/nodes', {
    metadata: { name: 'node-1', labels: { zone: 'a' } },
    status: { allocatable: { cpu: '1', pods: '9' }, conditions: [readyCondition] },
  })
  await post(`${STORAGE}/csinodes`, {
    metadata: { name: 'node-1' },
    spec: { drivers: [{ name: DRIVER, nodeID: 'node-1', topologyKeys: ['zone'] }] },
  })
}

const claimOf = (name: string, storageClassName: string, spec: object = {}) => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName, ...spec },
})
const podOf = (name: string, claims: readonly string[], volumes: readonly object[] = []) => ({
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'main', image: 'none' }],
    volumes: [...claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })), ...volumes],
  },
})

/** Creates a stateful set with a claim, and deletes both. */
async function useStatefulSet({
  api,
  post,
  waitUntil,
  waitUntilDeleted,
}: Awaited<ReturnType<typeof startCluster>>): Promise<void> {
  const sets = '/apis/apps/v1/namespaces/default/statefulsets'
  const { spec: podSpec } = podOf('db', [])
  await post(sets, {
    metadata: { name: 'db' },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'db' } },
      template: { metadata: { labels: { app: 'db' } }, spec: podSpec },
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claimOf('', 'immediate').spec }],
      persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete' },
    },
  })
  await waitUntil(`${sets}/db`, ({ status }) => expect(status.replicas).toBe(1))
  await api.patch(`${sets}/db`, { spec: { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete' } } }, 'merge')
  await waitUntil(`${CLAIMS}/data-db-0`, ({ metadata }) => expect(metadata.ownerReferences).toHaveLength(1))
  await api.delete(`${sets}/db`)
  await waitUntilDeleted(`${PODS}/db-0`)
  await waitUntilDeleted(`${CLAIMS}/data-db-0`)
}

const zoneA = { zone: 'a' }
const POOLS = {
  pools: [{ name: 'pool', capacityBytes: 100 * GI, segments: zoneA }],
  nodes: [{ id: 'node-1', segments: zoneA }],
}

describe('the commands with the permissions of the upstream roles', () => {
  it.each([
    { server: 'a server with transactions', hasCommits: true },
    { server: 'a server without transactions' },
    { server: 'a server with transactions, with one sidecar', hasCommits: true, hasOneSidecar: true },
    { server: 'a server without transactions, with one sidecar', hasOneSidecar: true },
  ])('SYS-29 provision, schedule, attach, expand, modify and delete on $server', async ({ server: _, ...options }) => {
    const cluster = await startCluster(POOLS, options)
    const { api, post, waitUntil, waitUntilDeleted } = cluster
    await post(CLAIMS, claimOf('now', 'immediate'))
    await post(CLAIMS, claimOf('later', 'waitforfirstconsumer'))
    const template = { spec: claimOf('', 'waitforfirstconsumer').spec }
    const scratch = { name: 'scratch', ephemeral: { volumeClaimTemplate: template } }
    await post(PODS, podOf('web', ['now', 'later'], [scratch]))
    await waitUntil(`${PODS}/web`, ({ spec }) => expect(spec.nodeName).toBe('node-1'))
    for (const name of ['now', 'later', 'web-scratch']) {
      await waitUntil(`${CLAIMS}/${name}`, ({ status }) => expect(status.phase).toBe('Bound'))
    }
    await waitUntil(`${STORAGE}/csistoragecapacities`, ({ items }) => expect(items.length).toBeGreaterThan(0))
    await waitUntil(`${STORAGE}/volumeattachments`, ({ items }) =>
      expect(items.map(({ status }: Json) => status?.attached)).toEqual([true, true, true]),
    )

    await post(`${STORAGE}/volumeattributesclasses`, {
      metadata: { name: 'gold' },
      driverName: DRIVER,
      parameters: { iops: '100' },
    })
    const spec = { resources: { requests: { storage: '2Gi' } }, volumeAttributesClassName: 'gold' }
    expect((await api.patch(`${CLAIMS}/later`, { spec }, 'merge')).status).toBe(200)
    await waitUntil(`${CLAIMS}/later`, ({ status }) => {
      expect(status.allocatedResourceStatuses?.storage).toBe('NodeResizePending')
      expect(status.currentVolumeAttributesClassName).toBe('gold')
    })

    await api.delete(`${PODS}/web?gracePeriodSeconds=0`)
    await waitUntilDeleted(`${CLAIMS}/web-scratch`)
    await waitUntil(`${STORAGE}/volumeattachments`, ({ items }) => expect(items).toEqual([]))
    for (const name of ['now', 'later']) {
      await api.delete(`${CLAIMS}/${name}`)
      await waitUntilDeleted(`${CLAIMS}/${name}`)
    }
    await waitUntil(VOLUMES, ({ items }) => expect(items).toEqual([]))
    expect(Object.keys(cluster.fake.state.volumes)).toEqual([])
    await api.delete(`${STORAGE}/volumeattributesclasses/gold`)
    await waitUntilDeleted(`${STORAGE}/volumeattributesclasses/gold`)

    await post('/api/v1/namespaces', { metadata: { name: 'shop' } })
    await waitUntil('/api/v1/namespaces/shop/serviceaccounts/default', () => {})
    await waitUntil('/api/v1/namespaces/shop/configmaps/kube-root-ca.crt', () => {})
    const quota = { metadata: { name: 'all' }, spec: { hard: { persistentvolumeclaims: '1' } } }
    await post('/api/v1/namespaces/shop/resourcequotas', quota)
    if (options.hasCommits) {
      // On other servers, quotas are left to the controller manager.
      await waitUntil('/api/v1/namespaces/shop/resourcequotas/all', ({ status }) =>
        expect(status?.used).toEqual({ persistentvolumeclaims: '0' }),
      )
    }
    await api.delete('/api/v1/namespaces/shop')
    await waitUntilDeleted('/api/v1/namespaces/shop')
    await useStatefulSet(cluster)

    const unusedCommands = options.hasOneSidecar ? ['provisioner', 'resizer', 'attacher'] : ['sidecar']
    for (const command of Object.keys(ROLES).filter((name) => !unusedCommands.includes(name))) {
      const deniedRequests = cluster
        .denied(command)
        .filter((request) => !REPLACED_PATCHES.includes(request) && request !== REPORT_REQUEST)
      expect(deniedRequests, command).toEqual(Object.keys(EXTRA_RIGHTS[command] ?? {}))
    }
    const extraDenials = Object.entries(EXTRA_RIGHTS).flatMap(([command, rights]) =>
      Object.keys(rights).map((right) => [command, `cannot ${right.replace('update', 'patch')}`] as const),
    )
    const isExtra = (problem: string) =>
      extraDenials.some(([command, denial]) => problem.startsWith(`${command}: `) && problem.includes(denial))
    expect(cluster.problems.filter((problem) => !isExtra(problem))).toEqual([])
  })

  it('SYS-29 the provisioner provisions all other claims without permission to read attributes classes', async () => {
    const { post, waitUntil, denied: deniedRequests } = await startCluster(POOLS)
    await post(`${STORAGE}/volumeattributesclasses`, {
      metadata: { name: 'gold' },
      driverName: DRIVER,
      parameters: { iops: '100' },
    })
    await post(CLAIMS, claimOf('with-class', 'immediate', { volumeAttributesClassName: 'gold' }))
    await waitUntil('/api/v1/namespaces/default/events', ({ items }) => {
      const event = items.find(({ reason }: Json) => reason === 'ProvisioningFailed')
      expect(event?.message).toMatch(
        /VolumeAttributesClass "gold" of the claim could not be read: .* cannot get resource/,
      )
    })
    await post(CLAIMS, claimOf('without-class', 'immediate'))
    await waitUntil(`${CLAIMS}/without-class`, ({ status }) => expect(status.phase).toBe('Bound'))
    await waitUntil(`${CLAIMS}/with-class`, ({ status }) => expect(status.phase).toBe('Pending'))
    expect(deniedRequests('provisioner')).toContain('get volumeattributesclasses.storage.k8s.io')
  })

  it('SYS-29 the node agent runs a pod without permission to list claims and volumes', async () => {
    const {
      deps,
      dir,
      writeKubeconfig,
      track,
      post,
      waitUntil,
      waitUntilDeleted,
      api,
      denied: deniedRequests,
      problems,
    } = await startCluster(POOLS)
    const kubeconfig = await writeKubeconfig('node')
    const flags = { kubeconfig, nodeName: 'left', rootDir: join(dir, 'left'), runCommands: false, maxPods: '10' }
    track(runNode(flags, { ...deps('node'), onReady: () => {} }))
    const container = { name: 'main', image: 'none', volumeMounts: [{ name: 'scratch', mountPath: '/s' }] }
    const spec = { nodeName: 'left', containers: [container], volumes: [{ name: 'scratch', emptyDir: {} }] }
    await post(PODS, { metadata: { name: 'web' }, spec: { ...spec, terminationGracePeriodSeconds: 0 } })
    await waitUntil(`${PODS}/web`, ({ status }) => expect(status.phase).toBe('Running'))
    await api.delete(`${PODS}/web`)
    await waitUntilDeleted(`${PODS}/web`)
    const resources = ['persistentvolumeclaims', 'persistentvolumes', 'volumeattachments.storage.k8s.io']
    const reviewedRequests = ['list', 'watch'].flatMap((verb) => resources.map((resource) => `${verb} ${resource}`))
    expect(deniedRequests('node'), 'the agent requests these rights in a review').toEqual(reviewedRequests)
    expect(problems.filter((problem) => problem.startsWith('node:'))).toEqual([])
  })
})
