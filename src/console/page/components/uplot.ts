// Makes uPlot a separate chunk of the bundle. app.css imports its styles.
import uPlot from 'uplot'

export default uPlot
