// `stowage up`: the whole system in one process. The flags it shares with `stowage server` are serving.ts.
import type { AddCommand } from '../../command.ts'
import { changeBudgetOption, changeCooldownOption } from '../../flags/change-throttle.ts'
import { capacityReservationOption, driverSocketOption } from '../../flags/common.ts'
import { addServing } from './serving.ts'

export const addUp: AddCommand = (program, deps) =>
  void addServing(program, deps, {
    name: 'up',
    summary: 'start the whole system on this machine',
    description:
      'Starts the API server on an embedded store, the controllers, the scheduler, and three nodes with storage, in one ' +
      'process. A second start on the same directory continues with the same data, certificate authority and credentials.',
    controllers: true,
  })
    .option('--nodes <count>', 'nodes to run, each with a driver for local storage (default: 3; 0 with --store)')
    .option('--pool-size <size>', 'storage of each node (default: 10Gi, less on a small disk)')
    .option('--run-commands', 'run the commands of pods as processes of this machine, see docs/explanation/nodes.md')
    .option('--volumes-dir <dir>', 'directory for volumes of the class "directory" (default: DATA-DIR/volumes)')
    .addOption(driverSocketOption())
    .addOption(capacityReservationOption())
    .addOption(changeBudgetOption())
    .addOption(changeCooldownOption())
