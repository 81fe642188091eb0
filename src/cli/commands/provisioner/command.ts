// The flags of `stowage provisioner`, named as external provisioners have them everywhere, so that a deployment can
// change the program and keep its arguments. What they set is provisioner.ts.
import { FEATURE_GATES, type FeatureGates } from '../../../api/feature-gates.ts'
import type { ListenAddress } from '../../../base/listen-address.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { type CapacityMode, parseEnableCapacity } from '../../../controllers/capacity/index.ts'
import type { AddCommand } from '../../command.ts'
import { CONNECTION_FLAGS, ELECTION_FLAGS, MONITORING_FLAGS } from '../../flags/sidecar.ts'
import {
  duration,
  type Flag,
  type FlagValues,
  number,
  rate,
  readFlags,
  readGates,
  text,
  toggle,
  wrong,
} from '../../flags/typed.ts'
import { addSidecar, readMonitoring } from '../../sidecar-command.ts'

const FLAGS = {
  ...CONNECTION_FLAGS,
  workerThreads: number('--worker-threads', 100, 'claims worked on at once, and as many volumes'),
  retryIntervalStart: duration('--retry-interval-start', '1s', 'first wait after a failure; it doubles'),
  retryIntervalMax: duration('--retry-interval-max', '5m', 'longest wait after failures'),
  volumeNamePrefix: text('--volume-name-prefix', 'pvc', 'what the names of volumes begin with'),
  volumeNameUuidLength: number('--volume-name-uuid-length', -1, "how much of the claim's uid follows; -1: all", {
    min: -1,
  }),
  strictTopology: toggle('--strict-topology', false, 'ask for volumes on the selected node only'),
  immediateTopology: toggle(
    '--immediate-topology',
    true,
    'tell the driver where nodes are, also for Immediate classes',
  ),
  extraCreateMetadata: toggle('--extra-create-metadata', false, 'tell the driver the names of claim and volume'),
  defaultFstype: text('--default-fstype', '', 'file system of classes that name none'),
  controllerPublishReadonly: toggle('--controller-publish-readonly', false, 'mark ReadOnlyMany volumes as read-only'),
  preventVolumeModeConversion: toggle(
    '--prevent-volume-mode-conversion',
    true,
    'refuse to restore a snapshot with another volume mode, unless its content allows it',
  ),
  cloningProtectionThreads: number('--cloning-protection-threads', 1, 'sources of copies let go of at once'),
  snapshotOrphanSweepInterval: duration(
    '--snapshot-orphan-sweep-interval',
    '5m',
    'between looks for snapshots that are still held; 0: only at the start',
    { min: 0 },
  ),
  provisionerSecretDir: text(
    '--provisioner-secret-dir',
    '',
    'credentials for the driver, a file per key: for classes that name no secret, and for deleting',
  ),
  nodeDeployment: toggle('--node-deployment', false, 'run on every node, for the volumes of that node ($NODE_NAME)'),
  nodeDeploymentImmediateBinding: toggle(
    '--node-deployment-immediate-binding',
    true,
    'compete with the other nodes for claims of Immediate classes',
  ),
  nodeDeploymentBaseDelay: duration('--node-deployment-base-delay', '20s', 'longest first wait of that competition'),
  nodeDeploymentMaxDelay: duration('--node-deployment-max-delay', '60s', 'longest wait of that competition'),
  enableCapacity: {
    flag: '--enable-capacity [true|false|central|local]',
    doc: 'publish how much room there is, for the scheduler; true means what the deployment is',
    default: 'false',
    read(given: string, name: string) {
      if (!/^(true|false|central|local)$/i.test(given)) throw wrong(name, given, 'true, false, central or local')
      return given
    },
  } satisfies Flag<string>,
  capacityThreads: number('--capacity-threads', 1, 'how many places are asked about at once'),
  capacityPollInterval: duration('--capacity-poll-interval', '1m', 'after this long the driver is asked again anyway'),
  capacityForImmediateBinding: toggle(
    '--capacity-for-immediate-binding',
    false,
    'also for classes that wait for no pod',
  ),
  capacityOwnerrefLevel: number(
    '--capacity-ownerref-level',
    1,
    'to whom the objects belong: 0 this pod ($POD_NAME), 1 its owner, 2 the owner of that; -1 nobody',
    { min: -1 },
  ),
  kubeApiCapacityQps: rate('--kube-api-capacity-qps', 1, 'writes of capacity objects per second; -1 for no limit'),
  kubeApiCapacityBurst: number('--kube-api-capacity-burst', 5, 'how many of them may go at once after a quiet time'),
  ...ELECTION_FLAGS,
  ...MONITORING_FLAGS,
  featureGates: text('--feature-gates', '', `switch features: ${FEATURE_GATES.slice(0, 2).join(', ')}`),
}

type Values = FlagValues<typeof FLAGS>

export interface ProvisionerSettings
  extends Omit<Values, 'featureGates' | 'httpEndpoint' | 'metricsAddress' | 'enableCapacity'> {
  /** How capacity is published, if it is. */
  readonly capacity: CapacityMode['is'] | undefined
  readonly gates: FeatureGates
  readonly monitoring: ListenAddress | undefined
}

export const addProvisioner: AddCommand = (program, deps) =>
  addSidecar(program, deps, {
    name: 'provisioner',
    summary: 'make volumes for claims, with a CSI driver',
    description:
      'Runs beside a CSI driver and makes and deletes its volumes for the claims of a Kubernetes API server, ours or another.',
    flags: FLAGS,
    example: '--csi-address /run/csi/socket --kubeconfig ~/.kube/config --extra-create-metadata',
    read: readProvisionerSettings,
    load: async () => (await import('./run.ts')).runProvisioner,
  })

export function readProvisionerSettings(given: Readonly<Record<string, unknown>>): ProvisionerSettings {
  const { featureGates, httpEndpoint, metricsAddress, enableCapacity, ...settings }: Values = readFlags(FLAGS, given)
  const monitoring = readMonitoring({ httpEndpoint, metricsAddress, metricsPath: settings.metricsPath })
  if (settings.nodeDeployment && settings.leaderElection) {
    throw new UsageError('--node-deployment and --leader-election exclude each other: on every node one is to work.')
  }
  if (settings.volumeNameUuidLength === 0) throw wrong('--volume-name-uuid-length', '0', '-1, or 1 or more')
  if (settings.volumeNamePrefix === '') throw wrong('--volume-name-prefix', '', 'a text that is not empty')
  const capacity = parseEnableCapacity(enableCapacity, settings)
  if (capacity === 'local' && !settings.nodeDeployment) {
    throw new UsageError(
      '--enable-capacity=local needs --node-deployment: there the process knows which node it is on.',
    )
  }
  if (capacity === 'central' && settings.nodeDeployment) {
    throw new UsageError(
      '--enable-capacity=central and --node-deployment exclude each other: every node would publish all.',
    )
  }
  return { ...settings, capacity, gates: readGates(featureGates, SETTLED), monitoring }
}

/** Gates of other provisioners that are settled here, one way or the other. */
const SETTLED: Readonly<Record<string, boolean>> = {
  Topology: true,
  CrossNamespaceVolumeDataSource: false,
  ReleaseLeaderElectionOnExit: true,
}
