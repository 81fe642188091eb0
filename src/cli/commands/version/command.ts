// `stowage version`: prints the version of the program and of its API.
import { stowageVersion, versionInfo } from '../../../apiserver/version.ts'
import type { AddCommand } from '../../command.ts'
import { outputOption } from '../../flags/common.ts'

export const addVersion: AddCommand = (program, deps) => {
  program
    .command('version')
    .summary('print the version')
    .description('Prints the version of this program and of the Kubernetes API it serves.')
    .addOption(outputOption())
    .action((flags) => {
      const { gitVersion, goVersion, platform } = versionInfo()
      const version = { stowage: stowageVersion, api: gitVersion, node: goVersion.slice('node '.length), platform }
      deps.write(
        flags.output === 'json'
          ? `${JSON.stringify(version, null, 2)}\n`
          : `stowage ${version.stowage} (serves ${version.api}, node ${version.node}, ${version.platform})\n`,
      )
    })
}
