// `stowage verify`: flags and help. run.ts runs the command.
import type { AddCommand } from '../../command.ts'
import { collectValues, outputOption } from '../../flags/common.ts'
import { canShowColors, noColorOption } from '../../output/color.ts'
import { standardError } from '../../output/work-progress.ts'

export const addVerify: AddCommand = (program, deps) => {
  program
    .command('verify')
    .summary('verify that a CSI driver follows the CSI specification')
    .description(
      'Tests a CSI driver against the rules of the CSI specification: each call directly, and the whole life of volumes through the ' +
        'controllers and the node agent on a virtual clock, with lost replies, repeated, concurrent, cancelled and slow calls, and ' +
        'a driver that is killed. It creates small volumes in the storage of the driver, stages and publishes them in a temporary ' +
        'directory of this machine, and removes all of them. No cluster is needed.',
    )
    .option('--csi-address <path>', 'socket of the driver (default with --driver: a temporary one)')
    .option('--controller-address <path>', 'socket of the controller service, if it is another one')
    .option(
      '--driver <command>',
      'command that starts the driver, which verify then kills and restarts; {socket} stands for the socket',
    )
    .option(
      '--class <file>',
      'YAML file with the StorageClass of the volumes and a VolumeAttributesClass to modify them',
    )
    .option(
      '--secrets <file>',
      'YAML file with the secrets of the calls, such as CreateVolumeSecret, as for csi-sanity',
    )
    .option('--size <size>', 'size of the volumes', '1Gi')
    .option('--expanded-size <size>', 'size of the volumes after an expansion (default: twice --size)')
    .option('--other-node <id>', 'id of a second node that the controller service knows')
    .option('--only <id>', 'run only this check; * stands for any text; may be repeated', collectValues)
    .option('--seed <number>', 'seed of names, delays and the order of events (default: random)')
    .option('--call-timeout <duration>', 'time after which a call counts as unanswered', '10s')
    .option('--work-dir <dir>', 'directory for staged and published volumes (default: a temporary one)')
    .option('--junit <file>', 'also write the result to this file as JUnit XML')
    .option('--dry-run', 'list the checks with their rules without calling a driver')
    .addOption(outputOption())
    .addOption(noColorOption())
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  stowage verify --csi-address /run/csi/csi.sock\n' +
        "  stowage verify --driver 'my-driver --endpoint unix://{socket}' --class class.yaml --junit result.xml\n" +
        "  stowage verify --dry-run --only 'life-*'\n",
    )
    .action(async ({ color, ...flags }) => {
      const { runVerify } = await import('./run.ts')
      await runVerify(flags, { ...deps, hasColors: canShowColors(color), progressOutput: standardError() })
    })
}
