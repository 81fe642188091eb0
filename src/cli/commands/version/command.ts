// `stowage version`: prints the version of the program and of its API.
import { stowageVersion, versionInfo } from '../../../apiserver/version.ts'
import type { AddCommand } from '../../command.ts'
import { outputOption } from '../../flags/common.ts'
import { formatOutput } from '../../output/format-output.ts'

export const addVersion: AddCommand = (program, deps) => {
  program
    .command('version')
    .summary('print the version')
    .description('Prints the version of this program and of the Kubernetes API it serves.')
    .addOption(outputOption())
    .addHelpText('after', '\nExample:\n  stowage version -o json\n')
    .action(async (flags) => {
      const { gitVersion, goVersion, platform } = versionInfo()
      const version = { stowage: stowageVersion, api: gitVersion, node: goVersion.slice('node '.length), platform }
      const text = () =>
        `stowage ${version.stowage} (serves ${version.api}, node ${version.node}, ${version.platform})\n`
      deps.write(await formatOutput(flags.output, version, text))
    })
}
