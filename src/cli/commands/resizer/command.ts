// `stowage resizer`: flags and help. The flags are those of the upstream external-resizer, so that a deployment can replace it
// and keep its arguments. What runs is run.ts.
import type { FeatureGates } from '../../../api/feature-gates.ts'
import type { ListenAddress } from '../../../base/listen-address.ts'
import type { ThrottleOptions } from '../../../controllers/volume-changes/index.ts'
import type { AddCommand } from '../../command.ts'
import { CHANGE_BUDGET_DOC, CHANGE_COOLDOWN_DOC, parseChangeThrottle } from '../../flags/change-throttle.ts'
import { CONNECTION_FLAGS, ELECTION_FLAGS, MONITORING_FLAGS } from '../../flags/sidecar.ts'
import { duration, type FlagValues, number, readFlags, readGates, text, toggle } from '../../flags/typed.ts'
import { addSidecar, readMonitoring } from '../../sidecar-command.ts'

const FLAGS = {
  ...CONNECTION_FLAGS,
  workers: number('--workers', 10, 'claims processed at once'),
  retryIntervalStart: duration(
    '--retry-interval-start',
    '1s',
    'first delay after a failure; doubles with every failure',
  ),
  retryIntervalMax: duration(
    '--retry-interval-max',
    '5m',
    'longest delay after failures, and the delay after an infeasible request',
  ),
  resyncPeriod: duration('--resync-period', '10m', 'accepted for compatibility, ignored', {
    min: 0,
  }),
  handleVolumeInuseError: toggle(
    '--handle-volume-inuse-error',
    true,
    'wait until no pod uses the volume, for drivers that expand offline only; needs read access to pods',
  ),
  checkCapacity: toggle(
    '--check-capacity',
    false,
    'reject an expansion beyond the published capacity before the driver is called; needs read access to CSIDrivers and CSIStorageCapacities',
  ),
  extraModifyMetadata: toggle(
    '--extra-modify-metadata',
    false,
    'pass the names of claim and volume to the driver on modification',
  ),
  nodeDeployment: toggle(
    '--node-deployment',
    false,
    'run on every node, for the volumes only that node reaches ($NODE_NAME); one leader per node',
  ),
  changeBudget: text('--change-budget', '', CHANGE_BUDGET_DOC),
  changeCooldown: text('--change-cooldown', '', CHANGE_COOLDOWN_DOC),
  ...ELECTION_FLAGS,
  ...MONITORING_FLAGS,
  featureGates: text('--feature-gates', '', 'enable or disable features: VolumeAttributesClass, VolumeProvisionedIO'),
}

/** Gates of the upstream resizer with a fixed value here. */
const SETTLED = { AnnotateFsResize: true, ReleaseLeaderElectionOnExit: true }

export interface ResizerSettings
  extends Omit<
    FlagValues<typeof FLAGS>,
    'featureGates' | 'httpEndpoint' | 'metricsAddress' | 'resyncPeriod' | 'changeBudget' | 'changeCooldown'
  > {
  readonly gates: FeatureGates
  readonly throttle: ThrottleOptions | undefined
  readonly monitoring: ListenAddress | undefined
}

export const addResizer: AddCommand = (program, deps) =>
  addSidecar(program, deps, {
    name: 'resizer',
    summary: 'expand volumes and modify their attributes, with a CSI driver',
    description:
      'Runs beside a CSI driver; expands its volumes and modifies their attributes for the claims of any Kubernetes API server.',
    flags: FLAGS,
    example: '--csi-address /run/csi/socket --kubeconfig ~/.kube/config --leader-election',
    read: readResizerSettings,
    load: async () => (await import('./run.ts')).runResizer,
  })

export function readResizerSettings(given: Readonly<Record<string, unknown>>): ResizerSettings {
  const {
    featureGates,
    httpEndpoint,
    metricsAddress,
    resyncPeriod: _,
    changeBudget,
    changeCooldown,
    ...settings
  } = readFlags(FLAGS, given)
  const monitoring = readMonitoring({ httpEndpoint, metricsAddress, metricsPath: settings.metricsPath })
  const throttle = parseChangeThrottle({ changeBudget, changeCooldown })
  return { ...settings, gates: readGates(featureGates, SETTLED), throttle, monitoring }
}
