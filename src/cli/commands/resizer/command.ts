// The flags of `stowage resizer`, named as the external resizer has them everywhere, so that a deployment can change the
// program and keep its arguments. What they set is resizer.ts.
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
  workers: number('--workers', 10, 'claims worked on at once'),
  retryIntervalStart: duration('--retry-interval-start', '1s', 'first wait after a failure; it doubles'),
  retryIntervalMax: duration(
    '--retry-interval-max',
    '5m',
    'longest wait after failures, and the wait after a size that was refused',
  ),
  resyncPeriod: duration('--resync-period', '10m', 'taken, and not needed: nothing here is found by looking again', {
    min: 0,
  }),
  handleVolumeInuseError: toggle(
    '--handle-volume-inuse-error',
    true,
    'wait for the end of pods where the driver grows only volumes that are not in use; needs to read pods',
  ),
  checkCapacity: toggle(
    '--check-capacity',
    false,
    'refuse growth for which there is no room before the driver is asked; needs to read CSIDrivers and capacities',
  ),
  extraModifyMetadata: toggle(
    '--extra-modify-metadata',
    false,
    'tell the driver for which claim and volume it changes attributes',
  ),
  nodeDeployment: toggle(
    '--node-deployment',
    false,
    'run on every node, for the volumes that only that node reaches ($NODE_NAME); elects a leader for each node',
  ),
  changeBudget: text('--change-budget', '', CHANGE_BUDGET_DOC),
  changeCooldown: text('--change-cooldown', '', CHANGE_COOLDOWN_DOC),
  ...ELECTION_FLAGS,
  ...MONITORING_FLAGS,
  featureGates: text('--feature-gates', '', 'switch features: VolumeAttributesClass, VolumeProvisionedIO'),
}

/** Gates of other resizers that are settled here, one way or the other. */
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
    summary: 'grow volumes of claims and change their attributes, with a CSI driver',
    description:
      'Runs beside a CSI driver; grows its volumes and changes their attributes for the claims of a Kubernetes API server, ' +
      'ours or another.',
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
