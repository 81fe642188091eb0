// `stowage unused`: flags and help. run.ts runs the command.
import { parseDuration } from '../../../base/duration.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, outputOption } from '../../flags/common.ts'
import { invalidFlag } from '../../flags/flag-types.ts'
import { canShowColors, noColorOption } from '../../output/color.ts'

export const addUnused: AddCommand = (program, deps) => {
  program
    .command('unused')
    .summary('list claims, volumes and classes that nothing uses, and the space that they hold')
    .description(
      'Lists claims that no pod uses, volumes that no claim uses, and classes that neither uses, with the space that each ' +
        'would free and the command that removes or explains it; commands that delete data are marked with LOSES DATA. The time since ' +
        'which no pod uses a claim is known with the feature gate PersistentVolumeClaimUnusedSinceTime; without it, the age of ' +
        'the claim is an upper bound. Classes are listed with --all-namespaces. The command only reads.',
    )
    .option('-n, --namespace <name>', 'namespace of the claims (default: the namespace of the kubeconfig)')
    .option('-A, --all-namespaces', 'list claims in all namespaces, volumes and classes')
    .option(
      '--older-than <duration>',
      'omit objects that have been unused for a shorter time, such as 12h or 30d',
      '7d',
    )
    .addOption(kubeconfigOption())
    .addOption(outputOption())
    .addOption(noColorOption())
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  stowage unused -n shop\n' +
        '  stowage unused --all-namespaces --older-than 30d\n' +
        '  stowage unused -A --older-than 0s -o json\n',
    )
    .action(async ({ color, olderThan, ...flags }) => {
      if (flags.namespace !== undefined && flags.allNamespaces) {
        throw new UsageError('Set --namespace or --all-namespaces, not both.')
      }
      const olderThanMs = parseAge('--older-than', olderThan)
      const { runUnused } = await import('./run.ts')
      await runUnused({ ...flags, olderThanMs }, { ...deps, env: process.env, hasColors: canShowColors(color) })
    })
}

const DAY_MS = 86_400_000

/** Parses a duration that may begin with days: `30d`, `1d12h`. */
function parseAge(flag: string, text: string): number {
  const [, days = '0', rest = ''] = /^(?:(\d+)d)?(.*)$/s.exec(text) ?? []
  const restMs = rest === '' && text !== '' ? 0 : parseDuration(rest)
  if (restMs !== undefined) return Number(days) * DAY_MS + restMs
  throw invalidFlag(flag, text, 'a duration such as 12h, 7d or 1d12h')
}
