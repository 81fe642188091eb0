// Renders the chart with Helm for every set of values in its folder ci, and compares the result with the manifests in deploy/
// and with the program's flags. `npx vitest run test/chart -u` writes deploy/.
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { createProgram, listCommandsBelow } from '../../src/cli/program.ts'
import { helmSkipReason, listValueSets, type Manifest, parseManifests, renderChart, runHelm } from '../helpers/helm.ts'

const DEPLOY = new URL('../../deploy', import.meta.url).pathname
/** The sets of values that deploy/ has as plain manifests. */
const PLAIN_SETS = ['replicated', 'sidecar', 'single']
const SETS = await listValueSets()
/** The sets with pods. The set sidecar-roles has only roles. */
const POD_SETS = SETS.filter((set) => set !== 'sidecar-roles')

const skipMessage = helmSkipReason()

describe.skipIf(skipMessage)(`the chart${skipMessage ? ` (skipped: ${skipMessage})` : ''}`, () => {
  const renderedTexts = new Map<string, string>()
  const manifestsOf = (set: string): Manifest[] => parseManifests(renderedTexts.get(set)!)
  /** Returns the Stowage containers, and expects at least one. */
  const containersOf = (set: string): Container[] => {
    const containers = manifestsOf(set).flatMap(stowageContainersOf)
    expect(containers.length).toBeGreaterThan(0)
    return containers
  }
  beforeAll(async () => {
    for (const set of SETS) renderedTexts.set(set, await renderChart(set))
  })

  it.each(SETS)('SYS-24 passes helm lint with the values %s', async (set) => {
    const { code, stdout, stderr } = await runHelm('lint', set)
    expect(code, stdout + stderr).toBe(0)
  })

  it.each(PLAIN_SETS)('SYS-24 renders deploy/%s.yaml', async (set) => {
    await expect(plainManifest(set, renderedTexts.get(set)!)).toMatchFileSnapshot(join(DEPLOY, `${set}.yaml`))
  })

  it.each(POD_SETS)('SYS-24 passes only flags that the program has, with the values %s', (set) => {
    const commands = listCommandsBelow(createProgram({} as never))
    for (const { args } of containersOf(set)) {
      const [name, ...flags] = args
      const command = commands.find((candidate) => candidate.name() === name)
      expect(command, name).toBeDefined()
      const flagNames = command!.options.map(({ long }) => long)
      expect(flags.map((flag) => flag.replace(/=.*/s, '')).filter((flag) => !flagNames.includes(flag))).toEqual([])
    }
  })

  it.each(POD_SETS.filter((set) => set !== 'single-privileged'))(
    'SYS-24 runs without privileges with the values %s',
    (set) => {
      for (const { securityContext } of containersOf(set)) {
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
      }
    },
  )

  it('SYS-24 runs privileged if a value requests it, with a read-only root file system', () => {
    const [{ securityContext }] = containersOf('single-privileged') as [Container]
    expect(securityContext).toEqual({ privileged: true, readOnlyRootFilesystem: true })
  })

  it.each(POD_SETS)('SYS-24 probes every process with the values %s', (set) => {
    for (const container of containersOf(set)) {
      for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) {
        expect(container.ports.map(({ name }) => name)).toContain(container[probe].httpGet.port)
      }
    }
  })

  it.each(POD_SETS)('has only selectors that match the pods of one component, with the values %s', (set) => {
    const objects = manifestsOf(set)
    const podLabels = objects.flatMap(({ spec }) => spec?.template?.metadata.labels ?? [])
    const selectors = objects.flatMap(({ kind, spec }) =>
      kind === 'Service'
        ? spec.selector
        : (spec?.podSelector?.matchLabels ?? (kind === 'PodDisruptionBudget' ? spec.selector.matchLabels : [])),
    )
    expect(selectors.length).toBeGreaterThan(0)
    for (const selector of selectors) {
      const selectedLabels = podLabels.filter((labels) =>
        Object.entries(selector).every(([key, value]) => labels[key] === value),
      )
      expect(selectedLabels, JSON.stringify(selector)).toHaveLength(1)
    }
  })

  it('SYS-24 binds the roles to the service account of another chart', () => {
    const [binding] = manifestsOf('sidecar-roles').filter(({ kind }) => kind === 'ClusterRoleBinding')
    expect(binding!.subjects).toEqual([{ kind: 'ServiceAccount', name: 'disks-controller', namespace: 'stowage' }])
    expect(manifestsOf('sidecar-roles').map(({ kind }) => kind)).not.toContain('ServiceAccount')
  })

  it('SYS-9 SYS-24 grants only what the named controllers and features need', () => {
    const rulesOf = (set: string, kind: string) => manifestsOf(set).find((object) => object.kind === kind)?.rules ?? []
    const resourcesOf = (set: string) =>
      rulesOf(set, 'ClusterRole').flatMap((rule: { resources: string[] }) => rule.resources)
    expect(resourcesOf('sidecar')).toEqual(
      expect.arrayContaining(['secrets', 'volumeattachments/status', 'volumesnapshots']),
    )
    for (const resource of ['secrets', 'volumeattachments/status', 'volumesnapshots', 'commits'])
      expect(resourcesOf('sidecar-node')).not.toContain(resource)
    const roleResourcesOf = (set: string) =>
      rulesOf(set, 'Role').flatMap((rule: { resources: string[] }) => rule.resources)
    expect(roleResourcesOf('sidecar')).toEqual(expect.arrayContaining(['leases', 'csistoragecapacities']))
    expect(roleResourcesOf('sidecar-node')).not.toContain('leases')
  })

  it('SYS-24 has no alert about missing servers in the mode sidecar, which runs none', async () => {
    const renderAlerts = async (set: string) => {
      const { stdout } = await runHelm('template', set, ['--set', 'prometheusRule.enabled=true'])
      const [rule] = parseManifests(stdout).filter(({ kind }) => kind === 'PrometheusRule')
      return rule!.spec.groups.flatMap(({ rules }: { rules: { alert: string }[] }) => rules.map(({ alert }) => alert))
    }
    expect(await renderAlerts('single')).toContain('StowageDown')
    const sidecarAlerts = await renderAlerts('sidecar')
    expect(sidecarAlerts).not.toContain('StowageDown')
    expect(sidecarAlerts).toContain('StowageDriverFails')
  })

  /** Invalid values: the set they are added to, the change, and the expected message. */
  const WRONG_VALUES: readonly (readonly [set: string, change: string, message: string])[] = [
    ['sidecar', 'mode=cluster', 'mode'],
    ['sidecar', 'replicas=2', 'replicas'],
    ['sidecar', 'fullnameOverride=a.b', 'fullnameOverride'],
    ['sidecar', 'sidecar.replicas=0', 'sidecar/replicas'],
    ['sidecar', 'sidecar.driverName=', 'sidecar.driverName is empty: set it to the name of the CSI driver'],
    ['sidecar', 'sidecar.socketPath=', 'sidecar.socketPath is empty: set it to the path'],
    ['sidecar', 'sidecar.socketPath=csi.sock', 'sidecar/socketPath'],
    ['sidecar', 'sidecar.driverContainers=null', 'sidecar has no driver: set sidecar.driverContainers'],
    ['sidecar', 'sidecar.controllers={snapshotter}', 'sidecar/controllers/0'],
    ['sidecar', 'sidecar.nodeDeployment=true', 'sidecar.nodeDeployment and sidecar.leaderElection exclude each other'],
    [
      'sidecar',
      'sidecar.leaderElection=false,sidecar.replicas=2',
      'sidecar.replicas is above 1 without sidecar.leaderElection',
    ],
    ['sidecar', 'sidecar.leaderElection=false,sidecar.holdUpstreamLeases=true', 'sidecar.holdUpstreamLeases requires'],
    ['sidecar', 'rbac.features={topology}', 'requires the feature leader-election in rbac.features'],
    ['sidecar', 'rbac.features={leader-election}', 'sidecar.capacity requires the feature capacity'],
    ['sidecar', 'rbac.features={snapshot}', 'rbac/features/0'],
    ['replicated', 'etcd.endpoints=null', 'etcd.endpoints is empty: mode=replicated needs etcd'],
    ['replicated', 'etcd.endpoints={https://etcd:2379}', 'etcd/endpoints/0'],
    ['replicated', 'pki.secretName=', 'pki.secretName is empty'],
    ['single', 'single.persistence.type=hostPath', 'single.persistence.hostPath is empty'],
    ['single', 'single.persistence.type=existingClaim', 'single.persistence.existingClaim is empty'],
    ['single', 'single.persistence.size=lots', 'single/persistence/size'],
  ]
  it.each(WRONG_VALUES)('rejects %s with %s', async (set, change, message) => {
    const { code, stdout, stderr } = await runHelm('template', set, ['--set', change])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr.replaceAll('.', '/')).toContain(message.replaceAll('.', '/')) // Helm versions print the paths of values differently
  })
})

interface Container {
  readonly image: string
  readonly args: readonly string[]
  readonly ports: readonly { readonly name: string }[]
  readonly securityContext: object
  readonly startupProbe: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
}
interface Probe {
  readonly httpGet: { readonly port: string }
}

const stowageContainersOf = ({ spec }: Manifest): Container[] =>
  (spec?.template?.spec.containers ?? []).filter(({ image }: Container) => image.startsWith('stowage:'))

/** Returns rendered manifests without the labels that only Helm uses, and with the namespace that Helm would create. */
function plainManifest(set: string, text: string): string {
  const plainText = text
    .replace(/^ +(helm\.sh\/chart|app\.kubernetes\.io\/managed-by): .*\n/gm, '')
    .replace(/^# Source: stowage\/templates\/(.*)$/gm, '# $1')
  const header = `# Rendered from charts/stowage with the values of charts/stowage/ci/${set}-values.yaml. Do not edit: change these.\n`
  return `${header}---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: stowage\n${plainText}`
}
