// `stowage up`: the whole system in one process. serve-command.ts has the flags that it shares with `stowage server`.
import { Option } from 'commander'
import { DEFAULT_PORT } from '../../../console/default-port.ts'
import type { AddCommand } from '../../command.ts'
import { changeBudgetOption, changeCooldownOption } from '../../flags/change-throttle.ts'
import {
  capacityGoneForOption,
  capacityReservationOption,
  collectValues,
  lostVolumePolicyOption,
  maxVolumesOption,
  nodeMonitorGraceOption,
  placementOption,
} from '../../flags/common.ts'
import { addPodFlags } from '../../flags/pod-options.ts'
import { addServeCommand } from './serve-command.ts'

export const addUp: AddCommand = (program, deps) => {
  const command = addServeCommand(program, deps, {
    name: 'up',
    summary: 'start the whole system on this machine',
    description:
      'Starts the API server with an embedded store, the controllers, the scheduler and three nodes with storage in one ' +
      'process. A restart with the same directory keeps the data, the certificate authority and the credentials.',
    runsControllers: true,
  })
    .option(
      '--nodes <count>',
      'number of nodes to run, each with a driver for local storage (default: 3; 1 with --store)',
    )
    .option('--pool-size <size>', 'storage of each node (default: 10Gi, less on a small disk)')
    .addOption(maxVolumesOption('the local driver of each node'))
    .option('--volumes-dir <dir>', 'directory for volumes of the class "directory" (default: DATA-DIR/volumes)')
    .addOption(
      new Option(
        '--driver <socket or command>',
        'CSI driver to use: its socket, or a command that starts it and may contain {socket}, {node} and {dir}; may be repeated',
      ).argParser(collectValues),
    )
    .addOption(new Option('--driver-socket <path>', 'the same as --driver with a socket').argParser(collectValues))
    .option(
      '--no-scheduler',
      'do not run the scheduler; a kube-scheduler or `stowage scheduler` schedules pods instead',
    )
    .option('--no-console', 'do not serve the browser console')
    .option(
      '--console-port <number>',
      `port of the console on 127.0.0.1 (default: ${DEFAULT_PORT}, or a free one if it is in use)`,
    )
    .addOption(
      new Option(
        '--warm-up <switch>',
        'whether to compile hot code in the background after the start, so that the first claims take as long as later ones',
      )
        .choices(['on', 'off'])
        .default('on'),
    )
    .addOption(capacityReservationOption())
    .addOption(placementOption())
    .addOption(lostVolumePolicyOption())
    .addOption(capacityGoneForOption())
    .addOption(nodeMonitorGraceOption())
    .addOption(changeBudgetOption())
    .addOption(changeCooldownOption())
  addPodFlags(command)
}
