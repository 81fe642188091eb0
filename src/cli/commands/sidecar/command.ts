// `stowage sidecar`: the command and its help. flags.ts has the flags, run.ts runs the command.
import type { AddCommand } from '../../command.ts'
import { addSidecarCommand } from '../../sidecar-command.ts'
import { IGNORED_FLAGS, SIDECAR_FLAGS } from './flags.ts'
import { readSidecarSettings } from './settings.ts'

export const addSidecar: AddCommand = (program, deps) =>
  addSidecarCommand(program, deps, {
    name: 'sidecar',
    summary: 'provision, attach, expand, modify and monitor volumes with a CSI driver',
    description:
      'Runs next to a CSI driver in place of external-provisioner, external-resizer, external-attacher and ' +
      'external-health-monitor: provisions, attaches, expands, modifies and deletes the volumes of the driver for the claims ' +
      'of any Kubernetes cluster, reports their health, and publishes the storage capacity. Accepts the flags of all four.',
    flags: SIDECAR_FLAGS,
    ignoredFlags: IGNORED_FLAGS,
    moreExamples: ['--print-replacement --image registry.example.com/stowage:1 < deployment.yaml'],
    example: '--csi-address /run/csi/socket --kubeconfig ~/.kube/config --leader-election',
    readSettings: readSidecarSettings,
    loadRun: async () => (await import('./run.ts')).runStowageSidecar,
  })
