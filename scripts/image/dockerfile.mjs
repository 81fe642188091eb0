// Reads the configuration of the image from the last stage of the Dockerfile, for the image that build-image.mjs assembles.
// Supports the instructions that configure an image, in the forms that the Dockerfile uses: lists as JSON, one variable per line.

/** Returns the field `config` of an OCI image. `args` are build arguments, which replace the defaults of ARG. */
export function readImageConfig(dockerfile, args) {
  const lines = dockerfile.replaceAll(/\\\n/g, ' ').split('\n')
  const stage = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')) + 1)
  const values = {}
  const config = { Env: [], Labels: {}, ExposedPorts: {}, Volumes: {} }
  for (const line of stage) {
    const [, instruction, text] = /^([A-Z]+) (.*)$/.exec(line) ?? []
    if (instruction === 'ARG') {
      const [name, defaultValue] = splitPair(text)
      values[name] = args[name] ?? defaultValue
    } else if (instruction)
      applyInstruction(
        config,
        instruction,
        text.replaceAll(/\$\{(\w+)\}/g, (_, name) => values[name]),
      )
  }
  return config
}

function applyInstruction(config, instruction, text) {
  switch (instruction) {
    case 'ENV':
      config.Env.push(text)
      break
    case 'LABEL': {
      const [name, value] = splitPair(text)
      config.Labels[name] = JSON.parse(value)
      break
    }
    case 'USER':
      config.User = text
      break
    case 'WORKDIR':
      config.WorkingDir = text
      break
    case 'EXPOSE':
      config.ExposedPorts[`${text}/tcp`] = {}
      break
    case 'VOLUME':
      config.Volumes[text] = {}
      break
    case 'ENTRYPOINT':
      config.Entrypoint = JSON.parse(text)
      break
    case 'CMD':
      config.Cmd = JSON.parse(text)
      break
    case 'RUN':
    case 'COPY':
      break // the files of the image, which build-image.mjs prepares itself
    default:
      throw new Error(`scripts/image/dockerfile.mjs does not support the instruction ${instruction}.`)
  }
}

function splitPair(text) {
  const index = text.indexOf('=')
  return index < 0 ? [text, undefined] : [text.slice(0, index), text.slice(index + 1)]
}
