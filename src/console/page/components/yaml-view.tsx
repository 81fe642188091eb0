// Shows an object as YAML, with colored keys.
import { formatYaml } from '../logic/yaml.ts'
import { CopyButton } from './command.tsx'

export function YamlView({ object }: { readonly object: unknown }) {
  const text = formatYaml(object)
  return (
    <div class="section">
      <div class="drawer-actions">
        <CopyButton text={text} label="Copy YAML" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the text scrolls, and the keyboard must reach it */}
      <pre class="yaml" tabIndex={0}>
        {text.split('\n').map((line, index) => {
          const [, lead = '', key, rest = ''] = /^(\s*(?:- )?)([^\s:][^:]*|"[^"]*")(:(?: .*)?)$/.exec(line) ?? []
          return (
            <span key={index}>
              {key === undefined ? (
                line
              ) : (
                <>
                  {lead}
                  <span class="yaml-key">{key}</span>
                  {rest}
                </>
              )}
              {'\n'}
            </span>
          )
        })}
      </pre>
    </div>
  )
}
